import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { nobleVerifier } from '@nd7/tlog';
import { followInclusion } from './inclusion.js';

const VECTORS = join(import.meta.dirname, '..', '..', '..', '..', 'tests', 'vectors', 'receipts');
const { vkey, receipts } = JSON.parse(readFileSync(join(VECTORS, 'index.json'), 'utf8')) as {
  vkey: string;
  receipts: { name: string; holds: boolean; reason?: string }[];
};
/** What is wrong with these lies between receipt and log, not in the receipt. */
const OF_THE_LOG = ['receipt-mismatch', 'truncated'];

it.each(receipts)('$name', async ({ name, holds, reason }) => {
  const bytes = readFileSync(join(VECTORS, `${name}.tlog-proof`));
  const followed = await followInclusion({ receipt: bytes, vkeys: [vkey] }, nobleVerifier);
  expect(followed.ok).toBe(holds || OF_THE_LOG.includes(reason ?? ''));
  if (followed.ok)
    expect(followed.steps.length === 0 ? followed.leaf : followed.steps.at(-1)?.gives).toBe(followed.root);
  else expect(followed.reason).toBe(reason);
});

it('steps lead to the root from either side', async () => {
  const receipt = readFileSync(join(VECTORS, 'good-middle.tlog-proof'));
  const followed = await followInclusion({ receipt, vkeys: [] }, nobleVerifier);
  expect(followed).toMatchObject({ ok: false, reason: 'bad-signature', signed: false });
  expect(followed.steps.at(-1)?.gives).toBe(followed.root);
});
