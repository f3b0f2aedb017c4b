import { spawn } from 'node:child_process';
import { openSync } from 'node:fs';
import { tryLock } from '@nd7/kernel';
import { data, DIST, draft, entries, expectIntact, freshHome, keyFiles, removeHomes } from './journal.fixture.js';
import type { Home } from './home.js';
import { openSession } from './open.js';
import { machineKey } from './session-keys.js';

afterAll(removeHomes);

/** A process that opens session `id` and appends `count` entries in its own name, one by one or together, and now and then seals or reopens. */
const SPEAKER = `
const [dist, home, id, name, count] = process.argv.slice(1);
const { openHome, openSession, machineKey } = await import(dist);
const h = openHome(home);
machineKey(h);
let journal = await openSession(h, id, { lockWaitMs: 60_000 });
const draft = (i) => ({ time: '2026-11-29T19:41:00.123Z', source: 'intent:claude-code', kind: 'tool.before', data: JSON.stringify({ name, i }) });
const all = [];
for (let i = 0; i < Number(count); i++) {
  all.push(journal.append([draft(i)], { sync: i % 5 === 0 }));
  if (i % 7 === 0) await Promise.all(all);
  if (i % 40 === 20) await journal.seal();
  if (i % 50 === 30) { await Promise.all(all); await journal.close(); journal = await openSession(h, id, { lockWaitMs: 60_000 }); }
}
const seqs = (await Promise.all(all)).map((a) => a[0].seq);
await journal.close();
console.log(JSON.stringify(seqs));
`;

function speak(home: Home, id: string, name: string, count: number): Promise<number[]> {
  const child = spawn(
    process.execPath,
    ['--input-type=module', '-e', SPEAKER, DIST, home.root, id, name, String(count)],
    { stdio: ['ignore', 'pipe', 'pipe'] },
  );
  const out: Buffer[] = [];
  const err: Buffer[] = [];
  child.stdout.on('data', (b: Buffer) => out.push(b));
  child.stderr.on('data', (b: Buffer) => err.push(b));
  return new Promise((resolve, reject) =>
    child.once('close', (code) => {
      if (code === 0) resolve(JSON.parse(Buffer.concat(out).toString()) as number[]);
      else reject(new Error(Buffer.concat(err).toString()));
    }),
  );
}

it('processes that append to one session at the same time, from its first entry on, never fork its chain', async () => {
  const home = freshHome();
  const names = ['recorder', 'hook-1', 'hook-2', 'hook-3'];
  const said = await Promise.all(names.map((name) => speak(home, 's', name, 120)));
  const all = entries(home, 's');
  await expectIntact(home, 's');
  expect(all.filter((e) => e.kind === 'session.start')).toHaveLength(1);
  for (const [n, name] of names.entries()) {
    const own = all.filter((e) => data(e)['name'] === name);
    expect(own.map((e) => data(e)['i'])).toEqual(Array.from({ length: 120 }, (_, i) => i)); // each in its own order, none twice
    expect(own.map((e) => e.seq)).toEqual(said[n]); // and each where its writer was told
  }
  expect(keyFiles(home, 's')).toHaveLength(1);
}, 120_000);

it('journals of one process on one session take turns too', async () => {
  const home = freshHome();
  const journals = await Promise.all([openSession(home, 's'), openSession(home, 's'), openSession(home, 's')]);
  expect(journals.map((j) => j.opened).sort()).toEqual(['created', 'resumed', 'resumed']);
  const all: Promise<unknown>[] = [];
  for (let i = 0; i < 300; i++) {
    const journal = journals[i % 3];
    if (journal) all.push(i % 50 === 0 ? journal.seal() : journal.append([draft()]));
    if (i % 10 === 0) await Promise.all(all);
  }
  await Promise.all(all);
  await Promise.all(journals.map((j) => j.close({ seal: true })));
  await expectIntact(home, 's');
  expect(entries(home, 's').filter((e) => e.kind === 'tool.before')).toHaveLength(294);
  expect(keyFiles(home, 's')).toHaveLength(1);
});

it('processes that begin many sessions at once agree on one machine key', async () => {
  const home = freshHome();
  await Promise.all(['a', 'b', 'c', 'd'].map((id) => speak(home, id, id, 1)));
  const machine = machineKey(home).publicKey;
  for (const id of ['a', 'b', 'c', 'd']) {
    expect(data(entries(home, id)[0])['machine']).toBe(machine);
    await expectIntact(home, id);
  }
}, 120_000);

it('two ids that differ by case only do not both come to be, however they race', async () => {
  const home = freshHome();
  const results = await Promise.allSettled([
    openSession(home, 'Session'),
    openSession(home, 'SESSION'),
    openSession(home, 'session'),
  ]);
  const [good, bad] = [results.filter((r) => r.status === 'fulfilled'), results.filter((r) => r.status === 'rejected')];
  expect([good.length, bad.length]).toEqual([1, 2]);
  for (const r of bad)
    expect(r.reason).toMatchObject({
      code: 'session-case',
      message: expect.stringContaining('only by case') as string,
    });
  for (const r of good) await r.value.close();
});

it('whoever holds the lock for too long makes others say so, and write nothing', async () => {
  const home = freshHome();
  const journal = await openSession(home, 's', { lockWaitMs: 30 });
  const fd = openSync(home.logFile('s'), 'r');
  expect(tryLock(fd)).toBe(true);
  await expect(journal.append([draft()])).rejects.toMatchObject({
    code: 'locked',
    message: expect.stringContaining('another process has held') as string,
  });
  await expect(openSession(home, 's', { lockWaitMs: 30 })).rejects.toMatchObject({ code: 'locked' });
  const { closeSync } = await import('node:fs');
  closeSync(fd);
  expect(await journal.append([draft()])).toMatchObject([{ seq: 1 }]);
  await journal.close();
});
