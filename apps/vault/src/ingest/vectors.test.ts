import { describe, expect, it } from '@jest/globals';
import { createKernel } from '@nd7/blake3';
import { genesis, parseHeadFile } from '@nd7/chain';
import { fromHex } from '@nd7/entry';
import { checkReceiptItself } from '@nd7/receipt';
import { verifySignatures } from '@nd7/signing';
import { parseVkey, type VerifierKey } from '@nd7/tlog';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Problem } from '../http/problem.js';
import { lineHashes } from './compare.js';
import { examine } from './examine.js';

// The vault's verdict on every vector: logs through what ingest runs over each segment, receipts and signatures through the verifier it signs
// with and checks claims by. What a machine could not have claimed (a head of no entries) is left to the verifier's own tests.

interface Log {
  name: string;
  session: string;
  intact: boolean;
  entries?: number;
  head?: string;
  bad_entry?: number;
  reason?: string;
}

const folder = join(import.meta.dirname, '../../../../tests/vectors');
const json = (path: string): unknown => JSON.parse(readFileSync(join(folder, path), 'utf8'));
const bytes = (path: string): Uint8Array => new Uint8Array(readFileSync(join(folder, path)));
const edge = json('edge/index.json') as { session: string; logs: Log[]; receipts: Receipt[] };
const logs = [
  ...(json('logs/index.json') as Log[]).map((log) => ({ ...log, folder: 'logs' })),
  ...edge.logs.map((log) => ({ ...log, session: edge.session, folder: 'edge' })),
];
const kernel = createKernel();

/** What ingest says of the bytes under a claim of these entries; `taken` when the chain holds, whatever is said of members and seals after it. */
async function said(log: (typeof logs)[number], to: number, head: string): Promise<unknown> {
  const claim = {
    origin: 'vault.test/acme',
    machine: '0'.repeat(64),
    session: log.session,
    from: 0,
    to,
    prev: genesis(log.session),
    head,
    signature: '',
  };
  try {
    await examine(bytes(`${log.folder}/${log.name}.jsonl`), claim, null, kernel);
    return 'taken';
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    if (['bad-member', 'unsealed', 'bad-machine'].includes(error.code)) return 'taken';
    return { code: error.code, bad_entry: error.extra.bad_entry };
  }
}

describe('logs', () => {
  const headOf = (log: (typeof logs)[number]): { entries: number; hash: string } | undefined => {
    const path = `${log.folder}/${log.name}.head.json`;
    return existsSync(join(folder, path)) ? parseHeadFile(bytes(path)) : undefined;
  };
  const claimable = logs.filter((log) => (log.intact ? (log.entries ?? 0) > 0 : headOf(log)?.entries !== 0));

  it('are all there, and almost all can be claimed', () => {
    expect(logs).toHaveLength(165);
    expect(claimable.length).toBeGreaterThan(150);
  });

  it.each(claimable.map((log) => [log.name, log] as const))('%s', async (_name, log) => {
    if (log.intact) {
      expect(await said(log, log.entries ?? 0, log.head ?? '')).toBe('taken');
      return;
    }
    const hashes = lineHashes(bytes(`${log.folder}/${log.name}.jsonl`), kernel);
    const head = headOf(log);
    // A claim counts what the head counts; where the fault lies behind the head, all that is there and one more.
    const covers = head !== undefined && (log.bad_entry ?? 0) < head.entries;
    const answer = covers
      ? await said(log, head.entries, head.hash)
      : await said(log, hashes.length + 1, '0'.repeat(64));
    expect(answer).toEqual({ code: log.reason, bad_entry: log.bad_entry });
  });
});

interface Receipt {
  name: string;
  holds: boolean;
  reason?: string;
  vkeys?: string[];
}

describe('receipts', () => {
  const spec = json('receipts/index.json') as { vkey: string; receipts: Receipt[] };
  const all = [
    ...spec.receipts.map((one) => ({ ...one, file: `receipts/${one.name}.tlog-proof`, vkeys: [spec.vkey] })),
    ...edge.receipts.map((one) => ({ ...one, file: `edge/${one.name}.tlog-proof`, vkeys: one.vkeys ?? [] })),
  ];
  /** Reasons that need a log to hold the receipt against. */
  const AGAINST = ['receipt-mismatch', 'truncated'];

  it.each(all.map((one) => [one.name, one] as const))('%s', async (_name, one) => {
    const keys = one.vkeys.map((text) => parseVkey(text)).filter((key): key is VerifierKey => key !== undefined);
    const verdict = await checkReceiptItself(bytes(one.file), { keys }, verifySignatures);
    if (one.holds || AGAINST.includes(one.reason ?? '')) expect(verdict.ok).toBe(true);
    else expect(verdict).toMatchObject({ ok: false, reason: one.reason });
  });
});

describe('signatures', () => {
  const { cases } = json('ed25519-strict.json') as {
    cases: { message: string; pub_key: string; signature: string; accept: boolean }[];
  };

  it('each gets the strict verdict', async () => {
    const empty = new Uint8Array(0);
    const found = await verifySignatures(
      cases.map((one) => ({
        key: fromHex(one.pub_key) ?? empty,
        message: fromHex(one.message) ?? empty,
        signature: fromHex(one.signature) ?? empty,
      })),
    );
    expect(found).toEqual(cases.map((one) => one.accept));
  });
});
