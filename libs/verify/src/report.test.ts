import { createKernel } from '@nd7/blake3';
import { certMessage, genesis, sealMessage, type Head } from '@nd7/chain';
import { printEntry, toBase64, toHex, utf8 } from '@nd7/entry';
import { formatReceipt, formatStatement, type Trust } from '@nd7/receipt';
import { claimMessage, type Claim } from '@nd7/segment';
import { generateKeyPair, verifySignatures, type KeyPair } from '@nd7/signing';
import {
  cosign,
  formatCheckpoint,
  formatVkey,
  inclusionProof,
  leafHash,
  nodeHash,
  parsePolicy,
  parseVkey,
  signNote,
  treeRoot,
  type VerifierKey,
} from '@nd7/tlog';
import { blake3 } from '@noble/hashes/blake3.js';
import fc from 'fast-check';
import {
  explainReport,
  runPart,
  verifyParts,
  verifySession,
  type Against,
  type PartJob,
  type SessionReport,
} from './index.js';

const session = 'r-1';
const ORIGIN = 'vault.test/acme';
const NOW = Date.parse('2026-11-29T20:00:00.000Z');
const kernel = createKernel();
const verify = verifySignatures;
const keys = Array.from({ length: 9 }, generateKeyPair);
const [machine, vault, witness, stranger] = keys.slice(0, 4) as unknown as [KeyPair, KeyPair, KeyPair, KeyPair];

interface Made {
  bytes: Uint8Array;
  /** The hash after each count. */
  hashes: string[];
}

/** A log with a seal every few entries, by session keys that a machine certified; `ends` with session.end and a seal. */
function make(count: number, every: number, options: { by?: KeyPair; word?: string; ends?: boolean } = {}): Made {
  const { by = machine, word = 'said', ends = false } = options;
  let key = keys[4] as KeyPair;
  const hashes = [genesis(session)];
  const lines: Uint8Array[] = [];
  for (let seq = 0; seq < count; seq++) {
    const prev = hashes[seq] as string;
    const draft = {
      time: '2026-11-29T19:41:00.123Z',
      source: 'intent:claude-code',
      kind: 'prompt',
      data: JSON.stringify({ prompt: `${word} ${String(seq)}` }),
    };
    if (seq === 0 && every > 0) {
      const cert = toHex(by.sign(certMessage(session, key.publicKey)));
      Object.assign(draft, {
        source: 'recorder:nd7',
        kind: 'session.start',
        data: JSON.stringify({ machine: by.publicKey, key: key.publicKey, cert }),
      });
    } else if (every > 0 && (seq % every === 0 || (ends && seq === count - 1))) {
      const next = keys[4 + (seq % 5)] as KeyPair;
      const sig = toHex(key.sign(sealMessage(session, seq, prev, next.publicKey)));
      Object.assign(draft, {
        source: 'recorder:nd7',
        kind: 'seal',
        data: JSON.stringify({ next: next.publicKey, sig }),
      });
      key = next;
    } else if (ends && seq === count - 2)
      Object.assign(draft, { source: 'recorder:nd7', kind: 'session.end', data: '{}' });
    const line = printEntry(seq, prev, draft);
    hashes.push(toHex(blake3(line)));
    lines.push(line, utf8('\n'));
  }
  return { bytes: new Uint8Array(Buffer.concat(lines)), hashes };
}

/** Receipts for consecutive segments of a log, as a vault gives them: leaf 0 is another team member's. */
async function receiptsFor(
  { hashes }: Made,
  cuts: readonly [number, number][],
  options: { by?: KeyPair; cosigned?: boolean; session?: string } = {},
): Promise<string[]> {
  const { by = machine, cosigned = false } = options;
  const leaves = [utf8('another leaf\n')];
  for (const [from, to] of cuts) {
    const claim: Claim = {
      origin: ORIGIN,
      machine: by.publicKey,
      session: options.session ?? session,
      from,
      to,
      prev: hashes[from] as string,
      head: hashes[to] as string,
    };
    const signature = toBase64(by.sign(claimMessage(claim)));
    leaves.push(utf8(formatStatement({ type: 'head', ...claim, received: '2026-11-29T19:59:46.000Z', signature })));
  }
  const nodes = (level: number, index: number): Uint8Array =>
    level === 0
      ? leafHash(leaves[index] as Uint8Array)
      : nodeHash(nodes(level - 1, 2 * index), nodes(level - 1, 2 * index + 1));
  const text = formatCheckpoint({ origin: ORIGIN, size: leaves.length, root: await treeRoot(leaves.length, nodes) });
  const note =
    (await signNote(text, ORIGIN, vault)) +
    (cosigned ? `${await cosign(text, 'w1.test', witness, 1_790_000_000)}\n` : '');
  return Promise.all(
    leaves
      .slice(1)
      .map(async (leaf, i) => formatReceipt(leaf, i + 1, await inclusionProof(i + 1, leaves.length, nodes), note)),
  );
}

const raw = (key: KeyPair) => new Uint8Array(Buffer.from(key.publicKey, 'hex'));
const vkey = parseVkey(formatVkey(ORIGIN, 1, raw(vault))) as VerifierKey;
const trust: Trust = { keys: [vkey] };
const report = (made: Made, more: Partial<Against> = {}): Promise<SessionReport> =>
  verifySession({ session, bytes: made.bytes, kernel, verify, now: NOW, ...more });
const headOf = ({ hashes }: Made, entries = hashes.length - 1): Head => ({ entries, hash: hashes[entries] as string });
const states = (r: SessionReport) => [r.integrity.state, r.completeness.state, r.authenticity.state, r.freshness.state];
const words = (r: SessionReport) => [
  r.integrity.verdict,
  r.completeness.verdict,
  r.authenticity.verdict,
  r.freshness.verdict,
];
const short = `${machine.publicKey.slice(0, 8)}…${machine.publicKey.slice(-6)}`;

describe('what a success rests on', () => {
  test('receipts over all of an ended session: everything good, and nothing rests on the local head', async () => {
    const made = make(12, 4, { ends: true });
    const r = await report(made, {
      head: headOf(made),
      receipts: await receiptsFor(made, [
        [0, 6],
        [6, 12],
      ]),
      trust,
    });
    expect(states(r)).toEqual(['good', 'good', 'good', 'good']);
    expect(words(r)).toEqual(['Unchanged', 'Complete', `Signed by ${short}`, '14 s old']);
    expect(r.seals).toMatchObject({
      sealed_to: 11,
      tail: 0,
      seals: 3,
      first_key: 'pinned',
      pinned_by: `leaf 1 of ${ORIGIN}`,
    });
    const said = explainReport(r);
    expect(said[0]).toBe(`intact: 12 entries, head ${made.hashes[12] ?? ''}`);
    expect(said).toContain(`sealed to entry 11, first key pinned by receipt leaf 1 of ${ORIGIN}`);
    expect(said).toContain('unsealed tail: 0 entries');
    expect(said.join('\n')).not.toMatch(/local head|rests on nothing|had not ended/);
    expect(said.join('\n')).toContain('not checked: witnesses');
    expect(r.rests_on[0]).toContain(
      `a receipt of ${ORIGIN} up to 12 entries, received 2026-11-29T19:59:46.000Z, leaf 2 of 3`,
    );
    expect(r.classes).toEqual({ intent: 7, effect: 0, decision: 0, recorder: 5, unclassified: 0 });
  });

  test('a tail after the last receipt rests on seals, then on the local head', async () => {
    const made = make(14, 5);
    const r = await report(made, { head: headOf(made), receipts: await receiptsFor(made, [[0, 6]]), trust });
    expect(states(r)).toEqual(['part', 'part', 'good', 'good']);
    expect(words(r).slice(0, 2)).toEqual(['Unchanged', 'Complete to 6']);
    expect(r.integrity.text).toContain('Nothing outside this machine speaks for the last 3 of them');
    expect(r.rests_on.slice(-2)).toEqual([
      'seals by the pinned key from there to entry 10',
      expect.stringContaining('the local head only'),
    ]);
    expect(explainReport(r)).toContain('unsealed tail: 3 entries');
  });

  test('no receipt: the local head only; no head: the length on nothing; longer than its head: both', async () => {
    const made = make(8, 3);
    const byHead = explainReport(await report(made, { head: headOf(made) }));
    expect(byHead.some((line) => line.startsWith('rests on the local head only'))).toBe(true);
    expect(byHead).toContain('sealed, first key not pinned: rests on the machine key');
    const byNothing = await report(make(8, 0));
    expect(explainReport(byNothing).some((line) => line.startsWith('the length rests on nothing'))).toBe(true);
    expect(words(byNothing)).toEqual(['Unchanged', 'Not checked', 'Not signed by a key you pinned', 'Not checked']);
    expect(explainReport(byNothing)).toContain('unsealed');
    const behind = await report(made, { head: headOf(made, 5) });
    expect(behind.completeness.text).toContain('3 entries came after it and are counted by nothing');
    expect(behind.rests_on.at(-1)).toBe('nothing at all for the last 3 entries: they came after the head');
  });

  test('without a pinned key receipts are not checked, and do not fail', async () => {
    const made = make(6, 3);
    const r = await report(made, { head: headOf(made), receipts: await receiptsFor(made, [[0, 6]]) });
    expect([r.verdict, r.receipts]).toEqual(['intact', [{ result: 'not-checked' }]]);
    expect(r.not_checked).toContain('1 receipt: no vault key is pinned');
    expect(r.seals.first_key).toBe('not-pinned');
  });

  test('a quorum of witnesses is asked for where the policy asks', async () => {
    const made = make(6, 3);
    const parsed = parsePolicy(`witness w1 ${formatVkey('w1.test', 4, raw(witness))}\nquorum w1\n`);
    if (!parsed.ok) throw new Error(parsed.problem);
    const strict = { ...trust, policy: parsed.policy };
    const without = await report(made, { receipts: await receiptsFor(made, [[0, 6]]), trust: strict });
    expect([without.verdict, without.receipts.map((one) => one.result)]).toEqual(['intact', ['no-quorum']]);
    expect(without.authenticity.text).toContain('The receipt given does not hold: no-quorum.');
    const cosigned = await report(made, {
      receipts: await receiptsFor(made, [[0, 6]], { cosigned: true }),
      trust: strict,
    });
    expect(cosigned.receipts[0]?.result).toBe('holds');
    expect(cosigned.rests_on).toContain('your witness policy, quorum w1');
    expect(cosigned.not_checked.join('\n')).not.toContain('witnesses');
  });

  test('an old receipt is stale; without a clock freshness is not judged', async () => {
    const made = make(6, 3);
    const receipts = await receiptsFor(made, [[0, 6]]);
    expect((await report(made, { receipts, trust, now: NOW + 3 * 3_600_000 })).freshness).toMatchObject({
      state: 'part',
      verdict: 'Stale, 3 h',
    });
    // Of a receipt of tomorrow nobody can say how old it is: fresh it is not.
    expect((await report(made, { receipts, trust, now: NOW - 24 * 3_600_000 })).freshness).toMatchObject({
      state: 'unchecked',
      verdict: 'Not checked',
      text: expect.stringContaining('ahead of the clock here') as string,
    });
    const { bytes } = made;
    expect((await verifySession({ session, bytes, kernel, verify, receipts, trust })).freshness.verdict).toBe(
      'Not checked',
    );
  });
});

describe('what contradicts a log', () => {
  test('a log rewritten as a whole, head too: clean by itself, named by a receipt', async () => {
    const made = make(12, 5);
    const receipts = await receiptsFor(made, [
      [0, 6],
      [6, 12],
    ]);
    const forged = make(12, 5, { word: 'SAID' });
    expect((await report(forged, { head: headOf(forged) })).verdict).toBe('intact');
    const r = await report(forged, { head: headOf(forged), receipts, trust });
    expect(r).toMatchObject({
      verdict: 'broken',
      bad_entry: 5,
      reason: 'receipt-mismatch',
      entries: 5,
      head: forged.hashes[5],
    });
    expect(r.receipts.map(({ result }) => result)).toEqual(['receipt-mismatch', 'receipt-mismatch']);
    expect(r.authenticity.text).toContain('None of the 2 receipts given holds: receipt-mismatch.');
    expect(explainReport(r)[0]).toContain('broken at entry 5: receipt-mismatch');
    const byAnother = make(12, 5, { by: stranger });
    expect(await report(byAnother, { receipts, trust })).toMatchObject({
      verdict: 'broken',
      bad_entry: 0,
      reason: 'receipt-mismatch',
      entries: 0,
    });
  });

  test('a log rewritten after its first receipt is good up to there', async () => {
    const made = make(12, 0);
    const receipts = await receiptsFor(made, [
      [0, 4],
      [4, 8],
      [8, 12],
    ]);
    const lines = Buffer.from(made.bytes).toString().split('\n').slice(0, -1);
    const hashes = made.hashes.slice(0, 7);
    for (let i = 6; i < 12; i++) {
      lines[i] = (lines[i] ?? '').replace('said', 'SAID').replace(/"prev":"[^"]*"/, `"prev":"${hashes[i] ?? ''}"`);
      hashes.push(toHex(blake3(utf8(lines[i] ?? ''))));
    }
    const forged: Made = { bytes: utf8(`${lines.join('\n')}\n`), hashes };
    const r = await report(forged, { head: headOf(forged), receipts, trust });
    expect(r).toMatchObject({ verdict: 'broken', bad_entry: 7, reason: 'receipt-mismatch' });
    expect(r.receipts.map(({ result }) => result)).toEqual(['holds', 'receipt-mismatch', 'receipt-mismatch']);
    expect(r.completeness).toMatchObject({ state: 'part', verdict: 'Complete to 4' });
  });

  test('a log cut back is short by what the receipt counts; a receipt may hold where the head does not', async () => {
    const made = make(12, 5);
    const receipts = await receiptsFor(made, [
      [0, 6],
      [6, 12],
    ]);
    const short9: Made = {
      bytes: utf8(`${Buffer.from(made.bytes).toString().split('\n').slice(0, 9).join('\n')}\n`),
      hashes: made.hashes.slice(0, 10),
    };
    const cut = await report(short9, { head: headOf(short9), receipts, trust });
    expect(cut).toMatchObject({
      verdict: 'broken',
      bad_entry: 9,
      reason: 'truncated',
      completeness: { verdict: '3 missing', state: 'bad' },
    });
    const wrongHead = await report(made, { head: { entries: 7, hash: 'ab'.repeat(32) }, receipts, trust });
    expect(wrongHead).toMatchObject({
      verdict: 'broken',
      bad_entry: 6,
      reason: 'head-mismatch',
      entries: 6,
      head: made.hashes[6],
    });
    expect(wrongHead.receipts.map(({ result }) => result)).toEqual(['holds', 'holds']);
  });

  test('a receipt of another session fails without breaking this log', async () => {
    const made = make(6, 3);
    const receipts = await receiptsFor(made, [[0, 6]], { session: 'r-2' });
    const r = await report(made, { head: headOf(made), receipts, trust });
    expect([r.verdict, r.receipts[0]?.result, r.authenticity.state]).toEqual(['intact', 'receipt-mismatch', 'bad']);
  });
});

test('a log walked in parts gives the report that a single walk gives', async () => {
  const shapes = [make(30, 4, { ends: true }), make(9, 1), make(20, 0), make(1, 1), make(0, 0)];
  const made = await Promise.all(
    shapes.map(async (shape) => ({
      ...shape,
      receipts:
        shape.hashes.length > 9
          ? await receiptsFor(shape, [
              [0, 3],
              [3, 8],
            ])
          : [],
    })),
  );
  const at = fc.nat({ max: 1_000_000 });
  const change = fc.oneof(
    fc.tuple(at, fc.integer({ min: 1, max: 255 })).map(
      ([i, x]) =>
        (b: Buffer) =>
          void (b[i % b.length] = (b[i % b.length] as number) ^ x),
    ),
    // A digit or letter of a number, hash or key: the line stays JSON, so that the later checks are reached.
    fc.tuple(at, fc.constantFrom(0x30, 0x31, 0x39, 0x61, 0x0a)).map(
      ([i, to]) =>
        (b: Buffer) =>
          void (b[i % b.length] = to),
    ),
  );
  const split = (bytes: Uint8Array, wanted: readonly number[]) => {
    const starts = [0, ...[...bytes].flatMap((byte, i) => (byte === 10 ? [i + 1] : []))];
    const cuts = [...new Set([0, ...wanted.map((n) => starts[n % starts.length] as number)])].sort((a, b) => a - b);
    return cuts.map((from, i) => bytes.subarray(from, cuts[i + 1] ?? bytes.length));
  };
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom(...made),
      fc.array(change, { maxLength: 2 }),
      fc.array(at, { maxLength: 6 }),
      fc.constantFrom('head', 'behind', 'none'),
      async (log, changes, cuts, which) => {
        const bytes = Buffer.from(log.bytes);
        if (bytes.length > 0) for (const apply of changes) apply(bytes);
        const head =
          which === 'none'
            ? undefined
            : headOf(log, which === 'behind' ? Math.floor((log.hashes.length - 1) / 2) : undefined);
        const against: Against = { session, verify, receipts: log.receipts, trust, now: NOW, ...(head && { head }) };
        const whole = await verifySession({ ...against, bytes: new Uint8Array(bytes), kernel });
        const parts = split(new Uint8Array(bytes), cuts).map((part) => async (job: PartJob) => {
          const sent = structuredClone(job); // as through a worker's port
          return structuredClone(await runPart(sent, part, { kernel, verify }));
        });
        expect(await verifyParts(parts, against)).toEqual(whole);
      },
    ),
    { numRuns: 600 },
  );
}, 120_000);
