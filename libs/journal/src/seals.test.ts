import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { python } from '@nd7/testing';
import { data, draft, entries, expectIntact, freshHome, keyFiles, log, removeHomes } from './journal.fixture.js';
import { openSession } from './open.js';
import { readHead } from './read.js';

afterAll(removeHomes);

const clockAt = (start: number): { now(): number; tick(ms: number): void } => {
  let at = start;
  return { now: () => at, tick: (ms) => (at += ms) };
};

describe('seals', () => {
  it('come at the latest 256 entries after one another, and one key is left', async () => {
    const home = freshHome();
    const journal = await openSession(home, 's');
    await journal.append(Array.from({ length: 600 }, () => draft()));
    await journal.append([draft()], { sync: true });
    await journal.close();
    const seals = entries(home, 's')
      .filter((e) => e.kind === 'seal')
      .map((e) => e.seq ?? -1);
    expect(seals).toEqual([256, 512]);
    expect(keyFiles(home, 's')).toEqual(['2.key']);
    expect((await expectIntact(home, 's')).seals).toMatchObject({ seals: 2, sealedTo: 512 });
  });

  it('come after a MiB too, so that every segment can end with one and be shipped', async () => {
    const home = freshHome();
    const journal = await openSession(home, 's');
    for (let i = 0; i < 30; i++) await journal.append([draft({ text: 'x'.repeat(200_000) })]);
    await journal.close();
    let since = 0;
    const all = entries(home, 's');
    for (const [i, line] of log(home, 's').toString().split('\n').entries()) {
      since = all[i]?.kind === 'seal' ? 0 : since + line.length;
      expect(since).toBeLessThan(2 << 20);
    }
    await expectIntact(home, 's');
  });

  it('on request: the old key is gone, head.json counts the seal', async () => {
    const home = freshHome();
    const journal = await openSession(home, 's');
    const before = readFileSync(join(home.sessionKeys('s'), '0.key'));
    await journal.append([draft()]);
    const head = await journal.seal();
    expect(head).toEqual({ entries: 3, hash: journal.head });
    expect(keyFiles(home, 's')).toEqual(['1.key']);
    expect(readFileSync(join(home.sessionKeys('s'), '1.key'))).not.toEqual(before);
    expect(readHead(home, 's')).toEqual({ ...head, bytes: log(home, 's').length });
    expect([journal.sealedTo, journal.unsealed]).toEqual([2, 0]);
    expect(await journal.seal()).toEqual(head); // one that is there serves
    await journal.close({ seal: true });
    expect(entries(home, 's')).toHaveLength(3);
  });

  it('are made by the timer when the last is 60 s old and something came since', async () => {
    const home = freshHome();
    const clock = clockAt(Date.parse('2026-11-29T20:00:00Z'));
    const journal = await openSession(home, 's', { clock });
    await journal.append([draft()]);
    clock.tick(59_999);
    await journal.maintain();
    expect(journal.sealedTo).toBeNull();
    expect(readHead(home, 's')?.entries).toBe(2); // idle: the head is brought up to date
    clock.tick(1);
    await journal.maintain();
    expect(journal.sealedTo).toBe(2);
    clock.tick(600_000);
    await journal.maintain();
    expect(journal.entries).toBe(3);
    await journal.close();
    await expectIntact(home, 's');
  });

  it('are made at the close of a process that lives shorter than the timer, when they are due', async () => {
    const home = freshHome();
    const clock = clockAt(Date.parse('2026-11-29T20:00:00Z'));
    for (const [wait, seals] of [
      [0, 0],
      [30_000, 0],
      [31_000, 1],
      [1_000, 1],
    ] as const) {
      clock.tick(wait);
      const journal = await openSession(home, 's', { clock });
      await journal.append([draft()], { sync: true });
      await journal.close();
      expect([wait, entries(home, 's').filter((e) => e.kind === 'seal').length]).toEqual([wait, seals]);
    }
    await expectIntact(home, 's');
  });

  (python() !== '' ? it : it.skip)('satisfy the reference checker (nd7ref.py, needs python3)', async () => {
    const home = freshHome();
    const journal = await openSession(home, 's');
    await journal.append(Array.from({ length: 300 }, () => draft()));
    await journal.close({ seal: true });
    await expectIntact(home, 's', true);
  });

  it('go on over many openings, each key once', async () => {
    const home = freshHome();
    const keys = new Set<unknown>();
    for (let i = 0; i < 5; i++) {
      const journal = await openSession(home, 's');
      expect(journal.opened).toBe(i === 0 ? 'created' : 'resumed');
      await journal.append([draft()]);
      await journal.close({ seal: true });
      expect(keyFiles(home, 's')).toEqual([`${i + 1}.key`]);
    }
    for (const entry of entries(home, 's')) if (entry.kind === 'seal') keys.add(data(entry)['next']);
    expect(keys.size).toBe(5);
    await expectIntact(home, 's');
  });
});
