import { mkdirSync, rmSync, truncateSync, unlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { blake3Hex } from '@nd7/blake3';
import { createKeyFile } from '@nd7/signing';
import { continuationId } from './continuation.js';
import { closedSession, data, draft, entries, expectIntact, freshHome, log, removeHomes } from './journal.fixture.js';
import type { Home } from './home.js';
import { continueSession, openSession } from './open.js';
import { readHead } from './read.js';

afterAll(removeHomes);

describe('a chain that cannot go on', () => {
  const harms: [string, string, (home: Home) => void][] = [
    ['its key is gone', 'key-lost', (home) => rmSync(home.sessionKeys('s'), { recursive: true })],
    [
      'its key file is another',
      'key-lost',
      (home) => {
        rmSync(home.sessionKeys('s'), { recursive: true });
        mkdirSync(home.sessionKeys('s'), { mode: 0o700 });
        createKeyFile(join(home.sessionKeys('s'), '1.key'));
      },
    ],
    [
      'it is shorter than its head',
      'shortened',
      (home) => truncateSync(home.logFile('s'), log(home, 's').indexOf(10, 1500) + 1),
    ],
    ['it is empty, and its head is not', 'shortened', (home) => truncateSync(home.logFile('s'), 0)],
    [
      'its end differs from its head',
      'shortened',
      (home) => {
        const bytes = log(home, 's');
        bytes[bytes.length - 20] = 32;
        writeFileSync(home.logFile('s'), bytes);
      },
    ],
    [
      'a receipt counts more than it has',
      'shortened',
      (home) => {
        mkdirSync(home.receiptsDir('s'));
        writeFileSync(join(home.receiptsDir('s'), '1000.tlog-proof'), 'x');
      },
    ],
    [
      'the machine has another key',
      'machine-changed',
      (home) => {
        unlinkSync(home.machineKeyFile);
        createKeyFile(home.machineKeyFile);
      },
    ],
    [
      'its entry 0 names no key',
      'machine-changed',
      (home) => {
        rmSync(home.headFile('s'));
        const line = Buffer.from(
          log(home, 's')
            .toString()
            .split('\n')[0]
            ?.replace(/"data":\{.*/, '"data":{}}\n') ?? '',
        );
        writeFileSync(home.logFile('s'), line);
      },
    ],
  ];

  it.each(harms)('because %s is left as it is and continued under a new id', async (_what, why, harm) => {
    const home = freshHome();
    await closedSession(home, 's', 8, true);
    harm(home);
    const left = log(home, 's');
    const journal = await openSession(home, 's', { start: { agent: 'codex' } });
    expect([journal.opened, journal.session, journal.asked]).toEqual(['continued', 's.r1', 's']);
    expect(journal.continues?.session).toBe('s');
    await journal.append([draft()]);
    await journal.close({ seal: true });
    expect(log(home, 's')).toEqual(left);
    const first = data(entries(home, 's.r1')[0]);
    expect(first).toMatchObject({ continues: journal.continues, why, agent: 'codex' });
    await expectIntact(home, 's.r1');
    // From now on the old id, and the new one, lead there.
    for (const id of ['s', 's.r1']) {
      const again = await openSession(home, id);
      expect([again.opened, again.session, again.entries]).toEqual(['resumed', 's.r1', 3]);
      expect(again.continues).toEqual(journal.continues);
      await again.close();
    }
  });

  it('says how much of the old one is intact', async () => {
    const home = freshHome();
    await closedSession(home, 's', 8, true);
    const bytes = log(home, 's');
    const lines = bytes.toString().split('\n');
    const [start, hash] = [lines.slice(0, 5).join('\n').length, blake3Hex(Buffer.from(lines[4] as string))];
    bytes[start + 30] = 33; // within entry 5
    writeFileSync(home.logFile('s'), bytes);
    rmSync(home.sessionKeys('s'), { recursive: true });
    const journal = await openSession(home, 's');
    expect(journal.continues).toEqual({ session: 's', entries: 5, head: hash });
    await journal.close();
  });

  it('can happen to the continuation too: the number goes on, after the original id', async () => {
    const home = freshHome();
    await closedSession(home, 's', 1);
    await closedSession(home, 's.r2', 1); // somebody's session that merely is called so
    for (const [n, id] of [
      [1, 's.r1'],
      [2, 's.r3'],
      [3, 's.r4'],
    ] as const) {
      const newest = n === 1 ? 's' : n === 2 ? 's.r1' : 's.r3';
      rmSync(home.sessionKeys(newest), { recursive: true });
      const journal = await openSession(home, 's');
      expect([journal.session, journal.continues?.session]).toEqual([id, newest]);
      await journal.close();
    }
    const other = await openSession(home, 's.r2');
    expect([other.session, other.opened]).toEqual(['s.r2', 'resumed']);
    await other.close();
  });

  it('has its id cut to fit', () => {
    const longest = 'x'.repeat(128);
    expect(continuationId(longest, 12)).toBe(`${'x'.repeat(124)}.r12`);
    expect(continuationId('s', 1)).toBe('s.r1');
  });

  it('of the longest id is found again', async () => {
    const home = freshHome();
    const id = `${'y'.repeat(127)}z`;
    await closedSession(home, id, 1);
    rmSync(home.sessionKeys(id), { recursive: true });
    const journal = await openSession(home, id);
    expect(journal.session).toBe(`${'y'.repeat(125)}.r1`);
    await journal.close();
    const again = await openSession(home, id);
    expect(again.session).toBe(journal.session);
    await again.close();
  });

  it("by the vault's word: continued from the prefix that a receipt covers", async () => {
    const home = freshHome();
    await closedSession(home, 's', 4, true);
    const head = readHead(home, 's');
    const journal = await continueSession(home, { session: 's', entries: 3, head: 'a'.repeat(64), why: 'forked' });
    expect([journal.session, journal.opened]).toEqual(['s.r1', 'continued']);
    expect(data(entries(home, 's.r1')[0])).toMatchObject({
      continues: { session: 's', entries: 3, head: 'a'.repeat(64) },
      why: 'forked',
    });
    expect(readHead(home, 's')).toEqual(head);
    await journal.close();
    // Said twice (two processes heard it), it is done once.
    const again = await continueSession(home, { session: 's', entries: 3, head: 'a'.repeat(64), why: 'forked' });
    expect([again.session, again.opened]).toEqual(['s.r1', 'resumed']);
    await again.close();
  });

  it('is begun anew where a crash left an empty folder', async () => {
    const home = freshHome();
    await closedSession(home, 's', 1);
    rmSync(home.sessionKeys('s'), { recursive: true });
    mkdirSync(home.sessionDir('s.r1'), { mode: 0o700 });
    writeFileSync(home.logFile('s.r1'), '');
    const journal = await openSession(home, 's');
    expect(journal.session).toBe('s.r1');
    await journal.close();
    await expectIntact(home, 's.r1');
  });
});
