import {
  appendFileSync,
  chmodSync,
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { blake3Hex } from '@nd7/blake3';
import { createKeyFile } from '@nd7/signing';
import { continuationId } from './continuation.js';
import {
  data,
  draft,
  entries,
  expectIntact,
  freshHome,
  keyFiles,
  log,
  removeHomes,
  sessionFiles,
} from './journal.fixture.js';
import type { Home } from './home.js';
import { continueSession, openSession } from './open.js';
import { listSessions, readHead, readReceipts } from './read.js';

afterAll(removeHomes);

/** A closed session with `count` entries besides entry 0, sealed if asked. */
async function session(home: Home, id: string, count: number, seal = false): Promise<void> {
  const journal = await openSession(home, id);
  await journal.append(Array.from({ length: count }, () => draft()));
  await journal.close({ seal });
}

describe('a torn tail', () => {
  it.each([
    ['half a line', '{"v":1,"seq":4,'],
    ['a whole line that only lacks its end', '{"v":1,"seq":4,"prev":"' + '0'.repeat(64) + '","time":""}'],
    ['zeros, as a file system leaves them', '\0'.repeat(4096)],
    ['zeros and then a line end', '\0'.repeat(100) + '\n'],
    ['lines that link to nothing', 'a\nb\n'],
    ['more than a line may hold', 'z'.repeat(3_000_000)],
    ['one line end', '\n'],
  ])('of %s is kept aside, declared, and the chain goes on', async (_what, text) => {
    const home = freshHome();
    await session(home, 's', 3);
    const before = log(home, 's');
    appendFileSync(home.logFile('s'), text);
    const journal = await openSession(home, 's');
    expect([journal.opened, journal.session, journal.tornTails]).toEqual(['resumed', 's', 1]);
    await journal.append([draft()]);
    await journal.close();
    expect(log(home, 's').subarray(0, before.length)).toEqual(before);
    const kept = readFileSync(join(home.sessionDir('s'), 'log.torn-4-1'));
    expect(kept.subarray(32).toString()).toBe(text);
    expect(entries(home, 's')[4]).toMatchObject({ kind: 'gap', source: 'recorder:nd7' });
    expect(data(entries(home, 's')[4])).toEqual({
      reason: 'torn-tail',
      file: 'log.torn-4-1',
      bytes: text.length,
      blake3: blake3Hex(kept),
    });
    await expectIntact(home, 's');
    const again = await openSession(home, 's');
    expect([again.tornTails, again.entries]).toEqual([0, 6]);
    await again.close();
  });

  it('in place of entry 0 lets the session begin', async () => {
    const home = freshHome();
    mkdirSync(home.sessionDir('s'), { mode: 0o700 });
    writeFileSync(home.logFile('s'), '{"v":1,"se', { mode: 0o600 });
    const journal = await openSession(home, 's');
    await journal.close();
    expect(entries(home, 's').map((e) => e.kind)).toEqual(['session.start', 'gap']);
    expect(sessionFiles(home, 's')).toContain('log.torn-0-1');
    await expectIntact(home, 's');
  });

  it('may come again at the same place', async () => {
    const home = freshHome();
    await session(home, 's', 1);
    for (const [tail, length] of [
      ['first', 2],
      ['second', 3],
      ['first', 4],
    ] as const) {
      appendFileSync(home.logFile('s'), tail);
      await (await openSession(home, 's')).close();
      expect(entries(home, 's')).toHaveLength(length + 1);
    }
    expect(sessionFiles(home, 's').filter((n) => n.startsWith('log.torn'))).toEqual([
      'log.torn-2-1',
      'log.torn-3-1',
      'log.torn-4-1',
    ]);
    await expectIntact(home, 's');
  });

  it('that another process left is mended by the one that goes on', async () => {
    const home = freshHome();
    const journal = await openSession(home, 's');
    await journal.append([draft()]);
    appendFileSync(home.logFile('s'), 'half');
    await journal.append([draft()]);
    expect([journal.tornTails, journal.entries]).toEqual([1, 4]);
    await journal.close();
    await expectIntact(home, 's');
  });
});

describe('after a power cut', () => {
  it('entries behind a hole are set aside, whatever seals stand among them', async () => {
    const home = freshHome();
    await session(home, 's', 2, true); // durable: 4 entries, counted by head.json
    const headFile = readFileSync(home.headFile('s'));
    const oldKey = join(home.sessionKeys('s'), '1.key');
    copyFileSync(oldKey, join(home.root, 'old-key'));
    const durable = log(home, 's').length;
    await session(home, 's', 5, true); // not durable: the disk lost a page of it, and the key that its seal retired was not yet destroyed
    const bytes = log(home, 's');
    bytes.fill(0, durable + 10, durable + 200);
    writeFileSync(home.logFile('s'), bytes);
    writeFileSync(home.headFile('s'), headFile);
    copyFileSync(join(home.root, 'old-key'), oldKey);
    chmodSync(oldKey, 0o600);
    const journal = await openSession(home, 's');
    expect([journal.session, journal.entries]).toEqual(['s', 5]); // the four, and the gap
    await journal.append([draft()]);
    await journal.close({ seal: true });
    expect(keyFiles(home, 's')).toEqual(['2.key']);
    await expectIntact(home, 's');
  });
});

describe('opening', () => {
  it('does not read a long log from its beginning', async () => {
    const home = freshHome();
    const journal = await openSession(home, 's');
    for (let i = 0; i < 40; i++)
      await journal.append(Array.from({ length: 20 }, () => draft({ text: 'x'.repeat(5_000) })));
    await journal.close({ seal: true });
    // What stands before the last seal is the verifier's to judge: a byte changed there does not keep the session from going on.
    const bytes = log(home, 's');
    expect(bytes.length).toBeGreaterThan(4_000_000);
    bytes[1000] = 33;
    writeFileSync(home.logFile('s'), bytes);
    const again = await openSession(home, 's');
    expect([again.session, again.entries]).toEqual(['s', journal.entries]);
    await again.append([draft()]);
    await again.close();
  });

  it.each([
    ['head.json', (home: Home) => unlinkSync(home.headFile('s'))],
    ['a sound head.json', (home: Home) => writeFileSync(home.headFile('s'), '{"entries":')],
    [
      'a head.json whose bytes are right',
      (home: Home) => writeFileSync(home.headFile('s'), JSON.stringify({ ...readHead(home, 's'), bytes: 7 })),
    ],
  ])('finds the end without %s', async (_what, harm) => {
    const home = freshHome();
    await session(home, 's', 700, true);
    harm(home);
    const journal = await openSession(home, 's');
    expect([journal.session, journal.unsealed]).toEqual(['s', 0]);
    await journal.append([draft()]);
    await journal.close({ seal: true });
    expect(readHead(home, 's')).toMatchObject({ entries: journal.entries, bytes: log(home, 's').length });
    await expectIntact(home, 's');
  });

  it('destroys the key that the log does not name, and files that are no keys', async () => {
    const home = freshHome();
    await session(home, 's', 1, true);
    createKeyFile(join(home.sessionKeys('s'), '2.key'));
    createKeyFile(join(home.sessionKeys('s'), '0.key'));
    writeFileSync(join(home.sessionKeys('s'), '7.key'), 'half a k', { mode: 0o600 });
    const journal = await openSession(home, 's');
    expect(keyFiles(home, 's')).toEqual(['1.key']);
    await journal.append([draft()]);
    await journal.close({ seal: true });
    await expectIntact(home, 's');
  });

  it('never throws away what stood in the log, whatever is done to its end (property)', async () => {
    const home = freshHome();
    await session(home, 's', 6);
    const whole = log(home, 's');
    let n = 0;
    await fc.assert(
      fc.asyncProperty(fc.nat(whole.length), fc.uint8Array({ maxLength: 300 }), async (cut, added) => {
        const id = `p${n++}`;
        cpSync(home.sessionDir('s'), join(home.sessions, 'copy'), { recursive: true });
        // The chain is bound to its id: the copy must keep it, so the property plays in a home of its own.
        const other = freshHome();
        rmSync(join(home.sessions, 'copy'), { recursive: true });
        copyFileSync(home.machineKeyFile, other.machineKeyFile);
        cpSync(home.sessionDir('s'), other.sessionDir('s'), { recursive: true });
        cpSync(home.sessionKeys('s'), other.sessionKeys('s'), { recursive: true });
        unlinkSync(other.headFile('s'));
        const harmed = Buffer.concat([whole.subarray(0, cut), added]);
        writeFileSync(other.logFile('s'), harmed);
        const journal = await openSession(other, 's');
        await journal.append([draft({ id })]);
        await journal.close();
        await expectIntact(other, journal.session);
        const kept = readdirSync(other.sessionDir('s')).filter((f) => f.startsWith('log.torn-'));
        const good = log(other, 's');
        const tail =
          kept.length > 0 ? readFileSync(join(other.sessionDir('s'), kept[0] as string)).subarray(32) : Buffer.alloc(0);
        const before = harmed.length - tail.length;
        expect(good.subarray(0, before).equals(harmed.subarray(0, before))).toBe(true);
        expect(tail.equals(harmed.subarray(before))).toBe(true);
      }),
      { numRuns: 40 },
    );
  }, 60_000);
});

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
    await session(home, 's', 8, true);
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
    await session(home, 's', 8, true);
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
    await session(home, 's', 1);
    await session(home, 's.r2', 1); // somebody's session that merely is called so
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
    await session(home, id, 1);
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
    await session(home, 's', 4, true);
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
    await session(home, 's', 1);
    rmSync(home.sessionKeys('s'), { recursive: true });
    mkdirSync(home.sessionDir('s.r1'), { mode: 0o700 });
    writeFileSync(home.logFile('s.r1'), '');
    const journal = await openSession(home, 's');
    expect(journal.session).toBe('s.r1');
    await journal.close();
    await expectIntact(home, 's.r1');
  });
});

describe('a journal whose log is changed under it', () => {
  it.each([
    ['cut', (path: string) => truncateSync(path, statSync(path).size - 5)],
    ['removed', (path: string) => unlinkSync(path)],
    [
      'replaced',
      (path: string) => {
        copyFileSync(path, `${path}.2`);
        renameSync(`${path}.2`, path);
      },
    ],
  ])('(%s) stops, and says why to whoever comes later', async (_what, harm) => {
    const home = freshHome();
    const journal = await openSession(home, 's');
    await journal.append([draft()], { sync: true });
    harm(home.logFile('s'));
    await expect(journal.append([draft()])).rejects.toMatchObject({ code: 'changed' });
    await expect(journal.append([draft()])).rejects.toMatchObject({ code: 'stopped', cause: { code: 'changed' } });
    expect(journal.stopped?.code).toBe('changed');
    await journal.close();
    const again = await openSession(home, 's');
    await again.append([draft()], { sync: true });
    await again.close();
    await expectIntact(home, again.session);
  });
});

describe('listing', () => {
  it('gives the sessions, the last written first, and passes over what is none', async () => {
    const home = freshHome();
    expect(listSessions(home)).toEqual([]);
    await session(home, 'a', 1);
    await session(home, 'b', 2, true);
    mkdirSync(join(home.sessions, '.hidden'));
    mkdirSync(join(home.sessions, 'empty'));
    writeFileSync(join(home.sessions, 'file'), '');
    expect(listSessions(home).map((s) => [s.session, s.bytes, s.head?.entries])).toEqual(
      expect.arrayContaining([
        ['b', log(home, 'b').length, 4],
        ['a', log(home, 'a').length, 2],
      ]),
    );
    expect(listSessions(home)).toHaveLength(2);
  });

  it('gives receipts by the count they cover', () => {
    const home = freshHome();
    mkdirSync(home.receiptsDir('s'), { recursive: true });
    for (const name of ['100.tlog-proof', '9.tlog-proof', '007.tlog-proof', 'open.tlog-proof', '3.tlog-proof.tmp'])
      writeFileSync(join(home.receiptsDir('s'), name), name);
    expect(readReceipts(home, 's').map((r) => [r.entries, Buffer.from(r.text).toString()])).toEqual([
      [9, '9.tlog-proof'],
      [100, '100.tlog-proof'],
    ]);
    expect(readReceipts(home, 'none')).toEqual([]);
    expect(existsSync(home.sessionDir('none'))).toBe(false);
  });
});
