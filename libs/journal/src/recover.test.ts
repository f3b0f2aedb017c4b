import { spawnSync } from 'node:child_process';
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
  symlinkSync,
  truncateSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { blake3Hex } from '@nd7/blake3';
import { createKeyFile } from '@nd7/signing';
import {
  closedSession,
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
import { openSession } from './open.js';
import { listSessions, readHead, readReceipts } from './read.js';

afterAll(removeHomes);

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
    await closedSession(home, 's', 3);
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

  it('of any length is kept and declared without being held whole', async () => {
    const home = freshHome();
    await closedSession(home, 's', 3);
    const { size } = statSync(home.logFile('s'));
    const length = 64 << 20;
    truncateSync(home.logFile('s'), size + length); // whoever can write to a log can append to it
    const before = process.memoryUsage().arrayBuffers;
    let most = 0;
    const timer = setInterval(() => (most = Math.max(most, process.memoryUsage().arrayBuffers)), 1);
    const journal = await openSession(home, 's');
    clearInterval(timer);
    await journal.close();
    expect(most).toBeGreaterThan(0);
    expect(most - before).toBeLessThan(32 << 20);
    const gap = entries(home, 's').find(({ kind }) => kind === 'gap');
    const { file, bytes, blake3 } = data(gap) as { file: string; bytes: number; blake3: string };
    const kept = readFileSync(join(home.sessionDir('s'), file));
    expect([bytes, kept.length - 32, blake3]).toEqual([length, length, blake3Hex(kept)]);
    await expectIntact(home, 's');
  }, 120_000);

  it('may come again at the same place', async () => {
    const home = freshHome();
    await closedSession(home, 's', 1);
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
    await closedSession(home, 's', 2, true); // durable: 4 entries, counted by head.json
    const headFile = readFileSync(home.headFile('s'));
    const oldKey = join(home.sessionKeys('s'), '1.key');
    copyFileSync(oldKey, join(home.root, 'old-key'));
    const durable = log(home, 's').length;
    await closedSession(home, 's', 5, true); // not durable: the disk lost a page of it, and the key that its seal retired was not yet destroyed
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
    await closedSession(home, 's', 700, true);
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
    await closedSession(home, 's', 1, true);
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
    await closedSession(home, 's', 6);
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
  it('of a home that nobody may look into is not the listing of an empty one', () => {
    const home = freshHome();
    expect(listSessions(home)).toEqual([]);
    rmSync(home.sessions, { recursive: true });
    expect(listSessions(home)).toEqual([]);
    symlinkSync(home.sessions, home.sessions); // ELOOP, for root too
    expect(() => listSessions(home)).toThrow(/cannot be read \(ELOOP\): run nd7 as the user it belongs to/);
  });

  it('gives the sessions, the last written first, and passes over what is none', async () => {
    const home = freshHome();
    expect(listSessions(home)).toEqual([]);
    await closedSession(home, 'a', 1);
    await closedSession(home, 'b', 2, true);
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

  it('reads no head that is none: too long, a folder, a pipe', async () => {
    const home = freshHome();
    await closedSession(home, 's', 2);
    const head = readHead(home, 's');
    expect(head?.entries).toBe(3);
    const file = home.headFile('s');
    truncateSync(file, 1 << 30); // sparse: a gigabyte of NUL behind it
    expect(readHead(home, 's')).toBeUndefined();
    rmSync(file);
    mkdirSync(file);
    expect(readHead(home, 's')).toBeUndefined();
    rmSync(file, { recursive: true });
    if (spawnSync('mkfifo', [file]).status === 0) expect(readHead(home, 's')).toBeUndefined();
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
