// Runs the built files: a thread is a file of its own, which a test's on-the-fly compiler does not reach.
import { afterAll, describe, expect, it } from '@jest/globals';
import { genesis } from '@nd7/chain';
import { generateKeyPair } from '@nd7/signing';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Worker } from 'node:worker_threads';
import { Checkers } from '../../dist/ingest/checkers.js';
import { Kernel } from '../../dist/ingest/kernel.js';
import { Log } from '../../dist/log/log.js';
import type { VaultConfig } from '../../dist/config.js';
import { TestMachine, TestSession } from '../testing/session.fixture.js';
import type { CheckJob } from './check.js';
import { compress } from './frame.js';

const logged: string[] = [];
const log = new Log('info', (line: string) => logged.push(line));
const make = (threads: number): Checkers => new Checkers({ threads } as VaultConfig, log, new Kernel());
const [threads, here] = [make(2), make(0)];
afterAll(() => threads.onApplicationShutdown());

/** What is said of a job, a refusal as data. */
async function said(checkers: Checkers, job: CheckJob): Promise<unknown> {
  try {
    const { bytes, examined, frame } = await checkers.check(job);
    return { bytes, examined, framed: frame === undefined ? undefined : Buffer.from(frame).toString('hex') };
  } catch (error) {
    const { code, detail, extra, message } = error as Record<string, unknown>;
    return { code, detail, extra, message };
  }
}

const machine = new TestMachine('', 'vault.test/acme', generateKeyPair());
const session = new TestSession(machine.key, 's').start().more(300).more(40);

async function jobs(): Promise<[string, CheckJob, string | undefined][]> {
  const first = session.cut(0, 302);
  const next = session.cut(302);
  const claim = machine.claim('s', first);
  const plain = { body: first.bytes, encoding: undefined, claim, keyBefore: null };
  const packed = { ...plain, body: await compress(Buffer.from(first.bytes)), encoding: 'zstd' };
  const keyBefore = JSON.parse(Buffer.from(session.lines[301] as Uint8Array).toString()).data.next as string;
  const changed = Buffer.from(first.bytes);
  changed[changed.length - 300]! ^= 1;
  return [
    ['a session’s first segment, compressed', packed, undefined],
    ['a session’s first segment, plain', plain, undefined],
    ['its next segment', { ...plain, body: next.bytes, claim: machine.claim('s', next), keyBefore }, undefined],
    [
      'under another key',
      { ...plain, body: next.bytes, claim: machine.claim('s', next), keyBefore: session.firstKey },
      'bad-seal',
    ],
    ['a changed byte', { ...plain, body: changed }, 'wrong-prev'],
    ['a cut frame', { ...packed, body: packed.body.subarray(0, 100) }, 'bad-frame'],
    ['no frame', { ...packed, body: Buffer.from('nothing') }, 'bad-frame'],
    ['another encoding', { ...packed, encoding: 'gzip' }, 'bad-encoding'],
    ['too many lines', { ...plain, body: Buffer.alloc(4097, '\n') }, 'too-large'],
    ['no bytes', { ...plain, body: Buffer.alloc(0) }, 'truncated'],
  ];
}

describe('checking in threads', () => {
  it('says what is said without, of good segments and of bad ones, of many at once', async () => {
    const all = await jobs();
    const answers = await Promise.all([...all, ...all].map(([, job]) => said(threads, job)));
    for (const [i, [name, job, code]] of [...all, ...all].entries()) {
      expect([name, answers[i]]).toEqual([name, await said(here, job)]);
      expect([name, (answers[i] as { code?: string }).code]).toEqual([name, code]);
    }
  });

  it('says of every log vector what is said without', async () => {
    const folder = join(import.meta.dirname, '../../../../tests/vectors/logs');
    const names = readdirSync(folder).filter((name) => name.endsWith('.jsonl'));
    expect(names.length).toBeGreaterThan(50);
    const index = JSON.parse(readFileSync(join(folder, 'index.json'), 'utf8')) as { name: string; session: string }[];
    for (const { name, session: id } of index) {
      const body = readFileSync(join(folder, `${name}.jsonl`));
      const cut = { from: 0, to: Math.max(1, body.filter((byte) => byte === 10).length), prev: genesis(id) };
      const claim = machine.claim(id, { ...cut, head: 'f'.repeat(64) });
      const job = { body, encoding: undefined, claim, keyBefore: null };
      expect([name, await said(threads, job)]).toEqual([name, await said(here, job)]);
    }
  });

  it('tells whoever waited when a thread dies, and goes on with another', async () => {
    const checkers = make(1);
    const [, job] = (await jobs())[0] as [string, CheckJob, undefined];
    const inside = (checkers as unknown as { threads: { worker: Worker }[] }).threads;
    const lost = said(checkers, job);
    await inside[0]?.worker.terminate();
    expect(await lost).toMatchObject({
      message: expect.stringContaining('the checking thread died') as unknown as string,
    });
    expect(logged.join('')).toContain('a checking thread died');
    expect(await said(checkers, job)).toEqual(await said(here, job));
    await checkers.onApplicationShutdown();
  });
});
