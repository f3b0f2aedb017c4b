import { createKernel, referenceKernel } from '@nd7/blake3';
import { nobleVerifier } from '@nd7/tlog';
import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { parseHeadFile, walk } from './index.js';

interface Vector {
  name: string;
  session: string;
  intact: boolean;
  entries?: number;
  head?: string;
  bad_entry?: number;
  reason?: string;
  head_usable?: boolean;
}

const folder = fileURLToPath(new URL('../../../tests/vectors/', import.meta.url));
const json = (path: string): unknown => JSON.parse(readFileSync(folder + path, 'utf8'));
const logs = (json('logs/index.json') as Vector[]).map((v) => ({ ...v, folder: `${folder}logs/` }));
const edges = json('edge/index.json') as { session: string; logs: Vector[] };
const edge = edges.logs.map((v) => ({ ...v, session: edges.session, folder: `${folder}edge/` }));

test('the vectors are all there', () => {
  expect([logs.length, edge.length]).toEqual([126, 39]);
});

describe.each([
  ['kernel', createKernel()],
  ['reference', referenceKernel()],
])('with the %s', (_, kernel) => {
  test.each([...logs, ...edge].map((v) => [v.name, v] as const))('%s', async (_name, v) => {
    const bytes = new Uint8Array(readFileSync(`${v.folder}${v.name}.jsonl`));
    const headFile = `${v.folder}${v.name}.head.json`;
    const head = existsSync(headFile) ? parseHeadFile(new Uint8Array(readFileSync(headFile))) : undefined;
    if (v.head_usable !== undefined) expect(head !== undefined).toBe(v.head_usable);
    const result = await walk(bytes, { session: v.session, kernel, verify: nobleVerifier, ...(head && { head }) });
    const { verdict, entries, bad_entry, reason } = result;
    if (v.intact)
      expect({ verdict, entries, head: result.head }).toEqual({ verdict: 'intact', entries: v.entries, head: v.head });
    else
      expect({ verdict, bad_entry, reason }).toEqual({ verdict: 'broken', bad_entry: v.bad_entry, reason: v.reason });
  });
});
