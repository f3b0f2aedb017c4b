import { createKernel } from '@nd7/blake3';
import { genesis, walk } from '@nd7/chain';
import { verifySignatures } from '@nd7/signing';
import type { SignatureVerifier } from '@nd7/tlog';
import { nobleVerifier, parseVkey } from '@nd7/tlog';
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { LogFacts } from './index.js';
import { checkReceiptAgainst, checkReceiptItself, parseReceipt } from './index.js';

interface Vector {
  name: string;
  holds: boolean;
  reason?: string;
  vkeys?: string[];
  log?: string;
}

const folder = fileURLToPath(new URL('../../../tests/vectors/', import.meta.url));
const json = (path: string): unknown => JSON.parse(readFileSync(folder + path, 'utf8'));
const bytes = (path: string): Uint8Array => new Uint8Array(readFileSync(folder + path));

const spec = json('receipts/index.json') as { vkey: string; session: string; log: string; receipts: Vector[] };
const edge = json('edge/index.json') as { session: string; receipts: Vector[] };
const vectors = [
  ...spec.receipts.map((v) => ({
    ...v,
    file: `receipts/${v.name}.tlog-proof`,
    vkeys: [spec.vkey],
    log: `receipts/${spec.log}`,
    session: spec.session,
  })),
  ...edge.receipts.map((v) => ({
    ...v,
    file: `edge/${v.name}.tlog-proof`,
    vkeys: v.vkeys ?? [],
    log: `edge/${v.log ?? ''}`,
    session: edge.session,
  })),
];

/** What the walk of a log knows of the two counts that a receipt speaks of. */
async function factsOf(
  log: Uint8Array,
  session: string,
  counts: number[],
  verify: SignatureVerifier,
): Promise<LogFacts> {
  const result = await walk(log, { session, kernel: createKernel(), verify, marks: counts });
  return {
    session,
    ...(result.entry0 && { entry0: result.entry0 }),
    lines: result.lines,
    intactTo: result.entries,
    hashAt: (count) => (count === 0 ? genesis(session) : result.marks.get(count)),
  };
}

test('the vectors are all there, and each has its file', () => {
  expect([spec.receipts.length, edge.receipts.length]).toEqual([37, 40]);
  const files = [
    ...readdirSync(`${folder}receipts`).map((f) => `receipts/${f}`),
    ...readdirSync(`${folder}edge`).map((f) => `edge/${f}`),
  ];
  expect(files.filter((f) => f.endsWith('.tlog-proof')).sort()).toEqual(vectors.map(({ file }) => file).sort());
  for (const { log } of vectors) expect(existsSync(folder + log)).toBe(true);
});

describe.each([
  ['node:crypto', verifySignatures],
  ['noble', nobleVerifier],
])('with %s', (_, verify) => {
  test.each(vectors.map((v) => [v.name, v] as const))(
    '%s',
    async (_name, { file, vkeys, log, session, holds, reason }) => {
      const keys = vkeys.map((vkey) => parseVkey(vkey)!);
      expect(keys).not.toContain(undefined);
      const itself = await checkReceiptItself(bytes(file), { keys }, verify);
      if (!itself.ok) {
        expect({ holds: false, reason: itself.reason }).toEqual({ holds, reason });
        return;
      }
      const { from, to } = itself.receipt.statement;
      const against = checkReceiptAgainst(itself.receipt, await factsOf(bytes(log), session, [from, to], verify));
      expect(against.ok ? { holds: true } : { holds: false, reason: against.reason }).toEqual(
        holds ? { holds } : { holds, reason },
      );
    },
  );
});

test('a disagreement names the entry', async () => {
  const trust = { keys: [parseVkey(spec.vkey)!] };
  const named = async (file: string, log: string, session: string, keys = trust.keys): Promise<unknown> => {
    const itself = await checkReceiptItself(bytes(file), { keys }, verifySignatures);
    if (!itself.ok) return itself;
    const { from, to } = itself.receipt.statement;
    return checkReceiptAgainst(itself.receipt, await factsOf(bytes(log), session, [from, to], verifySignatures));
  };
  const log = `receipts/${spec.log}`;
  expect(await named('receipts/other-head.tlog-proof', log, spec.session)).toEqual({
    ok: false,
    reason: 'receipt-mismatch',
    bad_entry: 7,
  });
  expect(await named('receipts/other-prev.tlog-proof', log, spec.session)).toEqual({
    ok: false,
    reason: 'receipt-mismatch',
    bad_entry: 7,
  });
  expect(await named('receipts/of-another-session.tlog-proof', log, spec.session)).toEqual({
    ok: false,
    reason: 'receipt-mismatch',
  });
  expect(await named('receipts/of-another-machine.tlog-proof', log, spec.session)).toEqual({
    ok: false,
    reason: 'receipt-mismatch',
    bad_entry: 0,
  });
  const lines = bytes(log).filter((byte) => byte === 10).length;
  expect(await named('receipts/log-too-short.tlog-proof', log, spec.session)).toEqual({
    ok: false,
    reason: 'truncated',
    bad_entry: lines,
  });
});

test('a place beyond 2^53 is exact', () => {
  const receipt = parseReceipt(bytes('edge/r-index-beyond-2-53.tlog-proof'))!;
  const [, text] = /\nindex ([0-9]+)\n/.exec(receipt.text)!;
  expect(receipt.exactIndex).toBe(BigInt(text!));
  expect(parseReceipt(bytes('edge/r-index-beyond-2-32.tlog-proof'))).not.toHaveProperty('exactIndex');
});
