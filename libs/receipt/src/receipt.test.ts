import { utf8 } from '@nd7/entry';
import { claimMessage, enrolMessage, openMessage } from '@nd7/segment';
import { generateKeyPair, verifySignatures, type KeyPair } from '@nd7/signing';
import {
  cosign,
  formatCheckpoint,
  formatNote,
  formatVkey,
  inclusionProof,
  leafHash,
  newNodes,
  parseNote,
  parsePolicy,
  parseVkey,
  signNote,
  treeRoot,
  type VerifierKey,
  type WitnessPolicy,
} from '@nd7/tlog';
import fc from 'fast-check';
import type { LogFacts, Statement } from './index.js';
import {
  checkReceiptAgainst,
  checkReceiptItself,
  formatReceipt,
  formatStatement,
  indexOf,
  parseReceipt,
} from './index.js';

const [vault, machine, witness] = [generateKeyPair(), generateKeyPair(), generateKeyPair()];
const origin = 'vault.example/acme';
const received = '2026-11-29T19:41:00.123Z';
const [A, B] = ['a'.repeat(64), 'b'.repeat(64)];
const raw = (key: KeyPair): Buffer => Buffer.from(key.publicKey, 'hex');
const vkey = (key: KeyPair, name = origin, type: 1 | 4 = 1): VerifierKey =>
  parseVkey(formatVkey(name, type, raw(key)))!;
const trust = { keys: [vkey(vault)] };
const sign = (message: Uint8Array, key = machine): string => Buffer.from(key.sign(message)).toString('base64');
const claim = { origin, machine: machine.publicKey, session: 's-1', from: 8, to: 15, prev: A, head: B };
const head: Statement = { type: 'head', ...claim, signature: sign(claimMessage(claim)), received };

/** A receipt as a vault makes it: the statement as one leaf of a tree of so many. */
async function receiptOf(
  statement: Statement,
  index = 5,
  size = 11,
  more: { signer?: KeyPair; name?: string; lines?: (text: string) => Promise<string[]> } = {},
): Promise<string> {
  const leaf = utf8(formatStatement(statement));
  const hashes = Array.from({ length: size }, (_, i) => leafHash(i === index ? leaf : utf8(`leaf ${String(i)}`)));
  const nodes = new Map(
    (await newNodes(0, hashes, () => new Uint8Array(0))).map(({ level, index: at, hash }) => [
      `${String(level)}/${String(at)}`,
      hash,
    ]),
  );
  const read = (level: number, at: number): Uint8Array => nodes.get(`${String(level)}/${String(at)}`)!;
  const text = formatCheckpoint({ origin, size, root: await treeRoot(size, read) });
  const note = await signNote(text, more.name ?? origin, more.signer ?? vault);
  const lines = [...parseNote(note)!.signatures.map(({ line }) => line), ...((await more.lines?.(text)) ?? [])];
  return formatReceipt(leaf, index, await inclusionProof(index, size, read), formatNote(text, lines));
}

const reason = async (
  text: string | Uint8Array,
  ...more: [Parameters<typeof checkReceiptItself>[1]?]
): Promise<string> => {
  const verdict = await checkReceiptItself(text, more[0] ?? trust, verifySignatures);
  return verdict.ok ? 'holds' : verdict.reason;
};

test('a receipt, both ways', async () => {
  for (const size of [1, 2, 3, 8, 11]) {
    const text = await receiptOf(head, size - 1, size);
    const receipt = parseReceipt(text)!;
    expect([receipt.index, receipt.checkpoint.size, receipt.statement, receipt.text]).toEqual([
      size - 1,
      size,
      head,
      text,
    ]);
    expect(indexOf(receipt)).toBe(size - 1);
    expect(parseReceipt(utf8(text))).toEqual(receipt);
    expect(await reason(text)).toBe('holds');
  }
  expect(() => formatReceipt(utf8('nonsense'), 0, [], 'x')).toThrow(RangeError);
});

test('each check has its reason, and the first that fails is told', async () => {
  const other = generateKeyPair();
  const elsewhere: Statement = { ...head, origin: 'vault.example/other' };
  const forged: Statement = { ...head, head: A };
  expect(await reason('')).toBe('bad-receipt');
  expect(await reason(await receiptOf(head, 5, 11, { signer: other }))).toBe('bad-signature');
  expect(await reason(await receiptOf(head), { keys: [] })).toBe('bad-signature');
  expect(
    await reason(await receiptOf(head, 5, 11, { name: 'vault.example/other' }), {
      keys: [vkey(vault, 'vault.example/other')],
    }),
  ).toBe('bad-signature');
  expect(await reason(await receiptOf(elsewhere))).toBe('wrong-origin');
  const good = await receiptOf(head);
  expect(await reason(good.replace('index 5', 'index 4'))).toBe('bad-inclusion');
  expect(await reason(good.replace('index 5', 'index 11'))).toBe('bad-inclusion');
  expect(await reason(await receiptOf(forged))).toBe('bad-machine-signature');
  // Two faults: the earlier row.
  expect(await reason((await receiptOf(elsewhere, 5, 11, { signer: other })).replace('index 5', 'index 4'))).toBe(
    'bad-signature',
  );
  expect(await reason((await receiptOf(forged)).replace('index 5', 'index 4'))).toBe('bad-inclusion');
});

test('at most 63 siblings, and nothing but what the page says', async () => {
  const good = await receiptOf(head);
  const [first, extra, index, ...rest] = good.split('\n') as [string, string, string, ...string[]];
  const empty = rest.indexOf('');
  const proof = rest.slice(0, empty);
  const join = (...lines: string[]): string => lines.join('\n');
  const note = rest.slice(empty).join('\n');
  const sibling = proof[0]!;
  expect(parseReceipt(join(first, extra, index, ...new Array<string>(63).fill(sibling), note))).toBeDefined();
  for (const bad of [
    join(first, extra, index, ...new Array<string>(64).fill(sibling), note),
    join(first, extra, index, ...new Array<string>(100_000).fill(sibling), note),
    join(first, index, ...proof, note),
    join(first, index, extra, ...proof, note),
    join(first, extra, extra, index, ...proof, note),
    join(first, 'extra ', index, ...proof, note),
    join(first.replace('v1', 'v2'), extra, index, ...proof, note),
    join(` ${first}`, extra, index, ...proof, note),
    join(first, extra, `${index} `, ...proof, note),
    join(first, extra, 'index 05', ...proof, note),
    join(first, extra, 'index 10000000000000000', ...proof, note),
    join(first, extra, index, ...proof, 'x', note),
    join(first, extra, index, ...proof, sibling.slice(0, -2), note),
    join(first, extra, index, '', ...proof, note),
    good.replaceAll('\n', '\r\n'),
    `\ufeff${good}`,
    `${good}\n`,
    good.slice(0, -1),
  ]) {
    expect(parseReceipt(bad)).toBeUndefined();
  }
});

test("other leaves' receipts are checked by the same rows, where they are asked for", async () => {
  const enrol = { origin, machine: machine.publicKey, nameHash: A };
  const open = { origin, machine: machine.publicKey, session: 's-1', entries: 2, head: A, key: B };
  for (const statement of [
    { type: 'enrol', ...enrol, signature: sign(enrolMessage(enrol)), received },
    { type: 'open', ...open, signature: sign(openMessage(open)), received },
    { type: 'revoke', origin, machine: machine.publicKey, since: received, by: `u_${'0'.repeat(32)}`, received },
  ] as Statement[]) {
    const text = await receiptOf(statement);
    expect(await reason(text)).toBe('bad-receipt');
    expect(await checkReceiptItself(text, trust, verifySignatures, { anyType: true })).toMatchObject({
      ok: true,
      receipt: { statement },
    });
  }
  const forged = await receiptOf({
    type: 'enrol',
    ...enrol,
    nameHash: B,
    signature: sign(enrolMessage(enrol)),
    received,
  });
  expect(await checkReceiptItself(forged, trust, verifySignatures, { anyType: true })).toEqual({
    ok: false,
    reason: 'bad-machine-signature',
  });
});

test('a rotated key: both are trusted under one origin, each by its own', async () => {
  const next = generateKeyPair();
  const both = { keys: [vkey(vault), vkey(next)] };
  expect(await reason(await receiptOf(head), both)).toBe('holds');
  expect(await reason(await receiptOf(head, 5, 11, { signer: next }), both)).toBe('holds');
  expect(await reason(await receiptOf(head, 5, 11, { signer: next }))).toBe('bad-signature');
});

describe('witnesses', () => {
  const name = 'witness.example/1';
  const policyOf = (text: string): WitnessPolicy => {
    const parsed = parsePolicy(text);
    if (!parsed.ok) throw new Error(parsed.problem);
    return parsed.policy;
  };
  const one = policyOf(`witness w ${vkey(witness, name, 4).text}\nquorum w\n`);

  test('a quorum that has cosigned, one that has not, and none asked for', async () => {
    const cosigned = await receiptOf(head, 5, 11, {
      lines: async (text) => [await cosign(text, name, witness, 1_796_000_000)],
    });
    expect(await reason(cosigned, { ...trust, policy: one })).toBe('holds');
    expect(await reason(cosigned)).toBe('holds');
    expect(await reason(await receiptOf(head), { ...trust, policy: one })).toBe('no-quorum');
    expect(await reason(await receiptOf(head), { ...trust, policy: policyOf('quorum none\n') })).toBe('holds');
  });

  test('a bad cosignature counts as none, beside a good one too, and condemns nobody', async () => {
    const bad = await receiptOf(head, 5, 11, {
      lines: async (text) => [await cosign(`${text}x`, name, witness, 1_796_000_000)],
    });
    expect(await reason(bad, { ...trust, policy: one })).toBe('no-quorum');
    expect(await reason(bad, { ...trust, policy: policyOf('quorum none\n') })).toBe('holds');
    const beside = await receiptOf(head, 5, 11, {
      lines: async (text) => [await cosign(`${text}x`, name, witness, 1), await cosign(text, name, witness, 2)],
    });
    expect(await reason(beside, { ...trust, policy: one })).toBe('holds');
    // The vault's own word comes before: a forged machine signature with a quorum is still forged.
    const forged = await receiptOf({ ...head, head: A } as Statement, 5, 11, {
      lines: async (text) => [await cosign(text, name, witness, 1)],
    });
    expect(await reason(forged, { ...trust, policy: one })).toBe('bad-machine-signature');
  });
});

describe('against a log', () => {
  const facts = (more: Partial<LogFacts> = {}): LogFacts => ({
    session: 's-1',
    entry0: { machine: machine.publicKey },
    lines: 20,
    intactTo: 20,
    hashAt: (count) => (count === 8 ? A : count === 15 ? B : undefined),
    ...more,
  });
  const C = 'c'.repeat(64);
  test.each([
    ['as it is', {}, { ok: true }],
    ['exactly as long', { lines: 15, intactTo: 15 }, { ok: true }],
    ['broken after it', { intactTo: 15 }, { ok: true }],
    ['whose entry 0 says nothing', { entry0: { machine: undefined } }, { ok: true }],
    ['another session', { session: 's-2', lines: 0 }, { ok: false, reason: 'receipt-mismatch' }],
    ['another machine', { entry0: { machine: A }, lines: 0 }, { ok: false, reason: 'receipt-mismatch', bad_entry: 0 }],
    ['machine null', { entry0: { machine: null } }, { ok: false, reason: 'receipt-mismatch', bad_entry: 0 }],
    ['too short', { lines: 14, intactTo: 14 }, { ok: false, reason: 'truncated', bad_entry: 14 }],
    ['empty', { lines: 0, intactTo: 0 }, { ok: false, reason: 'truncated', bad_entry: 0 }],
    ['broken before its end', { intactTo: 14 }, { ok: false, reason: 'receipt-mismatch', bad_entry: 14 }],
    [
      'another beginning',
      { hashAt: (count: number) => (count === 8 ? C : B) },
      { ok: false, reason: 'receipt-mismatch', bad_entry: 7 },
    ],
    [
      'another end',
      { hashAt: (count: number) => (count === 8 ? A : C) },
      { ok: false, reason: 'receipt-mismatch', bad_entry: 14 },
    ],
    ['hashes not known', { hashAt: () => undefined }, { ok: false, reason: 'receipt-mismatch', bad_entry: 7 }],
  ] as [string, Partial<LogFacts>, object][])('%s', async (_, more, verdict) => {
    const { entry0, ...log } = facts(more);
    expect(checkReceiptAgainst(parseReceipt(await receiptOf(head))!, { ...log, ...(entry0 && { entry0 }) })).toEqual(
      verdict,
    );
  });

  test('where entry 0 does not pass, the machine is not looked at', async () => {
    const { session, lines, intactTo, hashAt } = facts();
    const log = { session, lines, intactTo, hashAt };
    expect(checkReceiptAgainst(parseReceipt(await receiptOf(head))!, log)).toEqual({ ok: true });
  });
});

test('any flipped byte: the receipt does not hold', async () => {
  const bytes = utf8(await receiptOf(head));
  for (let at = 0; at < bytes.length; at++) {
    const flipped = bytes.slice();
    flipped[at]! ^= 1 << (at % 8);
    expect(await reason(flipped)).not.toBe('holds');
  }
  await fc.assert(
    fc.asyncProperty(fc.nat(bytes.length - 1), fc.integer({ min: 1, max: 255 }), async (at, change) => {
      const flipped = bytes.slice();
      flipped[at]! ^= change;
      expect(await reason(flipped)).not.toBe('holds');
    }),
    { numRuns: 200 },
  );
}, 60_000);

test('a byte left out, doubled, or the rest cut off: it does not hold', async () => {
  const bytes = utf8(await receiptOf(head, 0, 1));
  for (let at = 0; at < bytes.length; at++) {
    expect(await reason(new Uint8Array([...bytes.subarray(0, at), ...bytes.subarray(at + 1)]))).not.toBe('holds');
    expect(await reason(new Uint8Array([...bytes.subarray(0, at + 1), ...bytes.subarray(at)]))).not.toBe('holds');
    expect(await reason(bytes.subarray(0, at))).not.toBe('holds');
  }
}, 60_000);

test('no bytes make a check throw', async () => {
  const good = await receiptOf(head);
  const pieces = fc.array(
    fc.oneof(fc.constantFrom(...good.split(/(?<=\n)/), '\n', '\n\n', good), fc.string({ unit: 'binary' })),
    { maxLength: 14 },
  );
  await fc.assert(
    fc.asyncProperty(
      fc.oneof(
        pieces.map((parts) => parts.join('')),
        fc.uint8Array({ maxLength: 400 }),
      ),
      async (text) => {
        const verdict = await reason(text);
        if (text !== good) expect(verdict).not.toBe('holds');
      },
    ),
    { numRuns: 500 },
  );
}, 60_000);
