// Runs the built files: a worker is a file of its own, which a test's on-the-fly compiler does not reach.
import { blake3 } from '@noble/hashes/blake3.js';
import { execFile } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { certMessage, genesis, sealMessage } from '@nd7/chain';
import { printEntry } from '@nd7/entry';
import { generateKeyPair } from '@nd7/signing';
import { verifyFile, type FileOptions } from '../../dist/verify/pool.js';
import { removeFolders, throwAwayFolder } from '../testing/cli.fixture.js';

afterAll(removeFolders);

const session = 'w-1';
const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString('hex');
const COUNT = 3_000;

/** About 1.5 MB with a seal every 256 entries. */
function makeLog(): { lines: Buffer[]; head: { entries: number; hash: string } } {
  const machine = generateKeyPair();
  let key = generateKeyPair();
  let prev = genesis(session);
  const lines: Buffer[] = [];
  for (let seq = 0; seq < COUNT; seq++) {
    const draft = {
      time: '2026-11-29T19:41:00.123Z',
      source: 'intent:claude-code',
      kind: 'prompt',
      data: JSON.stringify({ prompt: `${String(seq)} ${'é'.repeat(150)}` }),
    };
    if (seq === 0) {
      const cert = hex(machine.sign(certMessage(session, key.publicKey)));
      Object.assign(draft, {
        source: 'recorder:nd7',
        kind: 'session.start',
        data: JSON.stringify({ machine: machine.publicKey, key: key.publicKey, cert }),
      });
    } else if (seq % 256 === 0) {
      const next = generateKeyPair();
      const sig = hex(key.sign(sealMessage(session, seq, prev, next.publicKey)));
      Object.assign(draft, {
        source: 'recorder:nd7',
        kind: 'seal',
        data: JSON.stringify({ next: next.publicKey, sig }),
      });
      key = next;
    }
    const line = printEntry(seq, prev, draft);
    prev = hex(blake3(line));
    lines.push(Buffer.concat([line, Buffer.from('\n')]));
  }
  return { lines, head: { entries: COUNT, hash: prev } };
}

const { lines, head } = makeLog();
const options: FileOptions = { session, head, now: 1 };
function fileOf(bytes: Uint8Array): string {
  const path = join(throwAwayFolder(), 'log.jsonl');
  writeFileSync(path, bytes);
  return path;
}

test('one thread and several give the same report, with progress to the end', async () => {
  const path = fileOf(Buffer.concat(lines));
  const one = await verifyFile(path, { ...options, threads: 1 });
  expect(one).toMatchObject({
    verdict: 'intact',
    entries: COUNT,
    head: head.hash,
    seals: { seals: 11, sealed_to: 2816 },
  });
  for (const threads of [2, 4]) {
    const seen: number[] = [];
    expect(
      await verifyFile(path, { ...options, threads, onProgress: (done, total) => void seen.push(done / total) }),
    ).toEqual(one);
    expect(Math.max(...seen)).toBeLessThanOrEqual(1);
  }
  expect(await verifyFile(path, options)).toEqual(one);
}, 60_000);

test.each<[string, (all: Buffer[]) => Buffer[], number, string]>([
  [
    'a byte in the last part',
    (all) => all.with(2_900, Buffer.from((all[2_900] ?? '').toString().replace('2900 ', '2901 '))),
    2_901,
    'wrong-prev',
  ],
  [
    'a seal of a later part',
    (all) => all.with(2_304, Buffer.from((all[2_304] ?? '').toString().replace(/"sig":"../, '"sig":"00'))),
    2_304,
    'bad-seal',
  ],
  ['a line gone at a cut', (all) => all.toSpliced(COUNT / 2, 1), COUNT / 2, 'wrong-seq'],
  [
    'a line too long across every cut',
    (all) => [...all.slice(0, 5), Buffer.alloc(3_000_000, 0x61), Buffer.from('\n'), ...all.slice(5)],
    5,
    'too-long',
  ],
  ['a torn tail', (all) => [...all, Buffer.from('{')], COUNT, 'torn-tail'],
  ['lines beyond the head', (all) => [...all, Buffer.from('{}\n')], COUNT, 'bad-prefix'],
  ['nothing', () => [], 0, 'truncated'],
])(
  '%s is named the same by any number of threads',
  async (_, change, bad_entry, reason) => {
    const path = fileOf(Buffer.concat(change(lines)));
    const one = await verifyFile(path, { ...options, threads: 1 });
    expect(one).toMatchObject({ verdict: 'broken', bad_entry, reason });
    expect(await verifyFile(path, { ...options, threads: 3 })).toEqual(one);
  },
  60_000,
);

test('the bundle does the same with threads that read one file each', async () => {
  const bundle = join(import.meta.dirname, '../../dist/bundle');
  const path = fileOf(Buffer.concat(lines));
  const args = ['verify', path, '--session', session, '--threads', '3', '--json'];
  const { stdout } = await promisify(execFile)(process.execPath, [join(bundle, 'main.js'), ...args]);
  expect(JSON.parse(stdout)).toMatchObject({ verdict: 'intact', entries: COUNT, head: head.hash });
  const worker = readFileSync(join(bundle, 'worker.js'), 'utf8');
  const reads = [...worker.matchAll(/^(?:import|export)\b.* from ["'](.+)["']/gm)].map(([, name]) => name ?? '');
  expect(reads).not.toEqual([]);
  expect(reads.filter((name) => !name.startsWith('node:'))).toEqual([]);
}, 60_000);

test('a file that cannot be read is an error, not a verdict', async () => {
  await expect(verifyFile(join(throwAwayFolder(), 'none'), options)).rejects.toMatchObject({ code: 'ENOENT' });
  await expect(verifyFile(throwAwayFolder(), { ...options, threads: 2 })).rejects.toMatchObject({ code: 'EISDIR' });
});
