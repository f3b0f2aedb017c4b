// Reports of this release, kept for ever: a later one may add members, never change what a reader of an old report relies on.
// To add a case (never to change one): ND7_FREEZE=1 appends what is missing.
import { createKernel } from '@nd7/blake3';
import { parseHeadFile } from '@nd7/chain';
import { nobleVerifier, parseVkey, type VerifierKey } from '@nd7/tlog';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { verifySession, type SessionReport } from './index.js';

const vectors = fileURLToPath(new URL('../../../tests/vectors/', import.meta.url));
const frozenFile = fileURLToPath(new URL('../../../tests/frozen/reports-v1.json', import.meta.url));
const bytes = (path: string) => new Uint8Array(readFileSync(vectors + path));
const json = (path: string): unknown => JSON.parse(readFileSync(vectors + path, 'utf8'));

const logs = json('logs/index.json') as { name: string; session: string }[];
const receipts = json('receipts/index.json') as { vkey: string; session: string };
const cases: { name: string; receipts?: string[] }[] = [
  ...[
    'intact-0',
    'intact-40',
    'edited-byte',
    'tail-cut',
    'tail-torn',
    'head-behind',
    'sealed',
    'sealed-tail-without-seal',
    'seal-by-another-key',
  ].map((name) => ({ name })),
  { name: 'receipts', receipts: ['good-first', 'good-middle', 'good-last'] },
  { name: 'receipt-of-a-part', receipts: ['good-middle'] },
  { name: 'receipt-mismatch', receipts: ['good-first', 'other-head'] },
  { name: 'receipt-truncated', receipts: ['log-too-short'] },
  { name: 'receipt-bad-signature', receipts: ['signed-by-another-key'] },
];

async function reportOf({ name, receipts: held }: (typeof cases)[number]): Promise<SessionReport> {
  const common = { kernel: createKernel(), verify: nobleVerifier, now: Date.parse('2026-11-29T12:00:34.000Z') };
  if (held !== undefined) {
    const trust = { keys: [parseVkey(receipts.vkey) as VerifierKey] };
    const texts = held.map((one) => bytes(`receipts/${one}.tlog-proof`));
    return verifySession({
      session: receipts.session,
      bytes: bytes('receipts/log.jsonl'),
      receipts: texts,
      trust,
      ...common,
    });
  }
  const session = logs.find((log) => log.name === name)?.session ?? '';
  const head = parseHeadFile(bytes(`logs/${name}.head.json`));
  return verifySession({ session, bytes: bytes(`logs/${name}.jsonl`), ...common, ...(head && { head }) });
}

/** Sentences may be put better; which there are, and every word and number that programs read, may not change. */
function withoutSentences(value: unknown, key = ''): unknown {
  if (key === 'text') return typeof value;
  if (key === 'rests_on' || key === 'not_checked') return (value as unknown[]).map((one) => typeof one);
  if (Array.isArray(value)) return value.map((one) => withoutSentences(one));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, withoutSentences(inner, name)]));
}

const frozen = existsSync(frozenFile) ? (JSON.parse(readFileSync(frozenFile, 'utf8')) as Record<string, unknown>) : {};

test.each(cases.map((one) => [one.name, one] as const))('%s', async (name, one) => {
  const report = await reportOf(one);
  if (process.env['ND7_FREEZE'] !== undefined && frozen[name] === undefined) {
    frozen[name] = report;
    writeFileSync(frozenFile, `${JSON.stringify(frozen, null, 1)}\n`);
  }
  const before = frozen[name];
  expect(before).toBeDefined();
  expect(withoutSentences(report)).toMatchObject(withoutSentences(before) as object);
});
