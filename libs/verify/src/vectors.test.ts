import { createKernel } from '@nd7/blake3';
import { parseHeadFile } from '@nd7/chain';
import { nobleVerifier, parseVkey, type VerifierKey } from '@nd7/tlog';
import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { verifySession } from './index.js';

const folder = fileURLToPath(new URL('../../../tests/vectors/', import.meta.url));
const bytes = (path: string) => new Uint8Array(readFileSync(folder + path));
const json = (path: string): unknown => JSON.parse(readFileSync(folder + path, 'utf8'));
const kernel = createKernel();
const verify = nobleVerifier;

interface LogVector {
  name: string;
  session?: string;
  intact: boolean;
  entries?: number;
  head?: string;
  bad_entry?: number;
  reason?: string;
}
interface ReceiptVector {
  name: string;
  holds: boolean;
  reason?: string;
  vkeys?: string[];
  log?: string;
}

const edge = json('edge/index.json') as { session: string; logs: LogVector[]; receipts: ReceiptVector[] };
const receipts = json('receipts/index.json') as {
  vkey: string;
  session: string;
  log: string;
  receipts: ReceiptVector[];
};

const logs = [
  ...(json('logs/index.json') as LogVector[]).map((v) => ({ ...v, file: `logs/${v.name}` })),
  ...edge.logs.map((v) => ({ ...v, session: edge.session, file: `edge/${v.name}` })),
];
test.each(logs.map((v) => [v.name, v] as const))('log %s', async (_, v) => {
  const headFile = `${v.file}.head.json`;
  const head = existsSync(folder + headFile) ? parseHeadFile(bytes(headFile)) : undefined;
  const report = await verifySession({
    session: v.session ?? '',
    bytes: bytes(`${v.file}.jsonl`),
    kernel,
    verify,
    ...(head && { head }),
  });
  const { verdict, entries, bad_entry, reason } = report;
  if (v.intact)
    expect({ verdict, entries, head: report.head }).toEqual({ verdict: 'intact', entries: v.entries, head: v.head });
  else expect({ verdict, bad_entry, reason }).toEqual({ verdict: 'broken', bad_entry: v.bad_entry, reason: v.reason });
});

const all = [
  ...receipts.receipts.map((v) => ({
    ...v,
    vkeys: [receipts.vkey],
    session: receipts.session,
    file: `receipts/${v.name}`,
    log: `receipts/${receipts.log}`,
  })),
  ...edge.receipts.map((v) => ({
    ...v,
    vkeys: v.vkeys ?? [],
    session: edge.session,
    file: `edge/${v.name}`,
    log: `edge/${v.log ?? ''}`,
  })),
];
test.each(all.map((v) => [v.name, v] as const))('receipt %s', async (_, v) => {
  const report = await verifySession({
    session: v.session,
    bytes: bytes(v.log),
    receipts: [bytes(`${v.file}.tlog-proof`)],
    trust: { keys: v.vkeys.map((text) => parseVkey(text) as VerifierKey) },
    kernel,
    verify,
  });
  expect(report.receipts.map(({ result }) => result)).toEqual([v.holds ? 'holds' : v.reason]);
});
