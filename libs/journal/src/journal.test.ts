import { readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { blake3Hex } from '@nd7/blake3';
import { readEntry } from '@nd7/entry';
import { realDisk, type Disk } from './disk.js';
import { data, draft, entries, expectIntact, freshHome, keyFiles, log, removeHomes } from './journal.fixture.js';
import { openSession } from './open.js';
import { readHead } from './read.js';

afterAll(removeHomes);

describe('a new session', () => {
  it("begins with an entry 0 that names the certified first key, and the caller's members", async () => {
    const home = freshHome();
    const journal = await openSession(home, 'a-1', { start: { nd7: '0.1.0', agent: 'claude-code' } });
    expect([journal.opened, journal.entries, journal.session, journal.asked]).toEqual(['created', 1, 'a-1', 'a-1']);
    await journal.close();
    const [first] = entries(home, 'a-1');
    expect(first).toMatchObject({ seq: 0, source: 'recorder:nd7', kind: 'session.start', class: 'recorder' });
    expect(data(first)).toMatchObject({ nd7: '0.1.0', agent: 'claude-code', machine: expect.any(String) as string });
    const result = await expectIntact(home, 'a-1');
    expect(result.seals).toMatchObject({ seals: 0, firstKey: data(first)['key'], machine: data(first)['machine'] });
    expect(JSON.stringify(first)).not.toContain(process.env['HOSTNAME'] ?? 'no host name');
  });

  it('is private: folders 0700, files 0600', async () => {
    const home = freshHome();
    const journal = await openSession(home, 'a-1');
    await journal.append([draft()]);
    await journal.close({ seal: true });
    const mode = (path: string): string => (statSync(path).mode & 0o777).toString(8);
    for (const folder of [home.root, home.sessions, home.keys, home.sessionDir('a-1'), home.sessionKeys('a-1')])
      expect([folder, mode(folder)]).toEqual([folder, '700']);
    for (const file of [
      home.logFile('a-1'),
      home.headFile('a-1'),
      home.machineKeyFile,
      join(home.sessionKeys('a-1'), '1.key'),
    ])
      expect([file, mode(file)]).toEqual([file, '600']);
  });
});

describe('appending', () => {
  it('lets a caller see, with the lock held, what its entries will follow', async () => {
    const home = freshHome();
    const journals = [await openSession(home, 's'), await openSession(home, 's')];
    const count = (): number => log(home, 's').toString().split('\n').length - 1;
    await Promise.all(
      Array.from({ length: 20 }, (_, n) =>
        journals[n % 2]?.append([draft({ n })], { amend: ([one]) => [{ ...one, ...draft({ n, after: count() }) }] }),
      ),
    );
    for (const journal of journals) await journal.close();
    const appended = entries(home, 's').slice(1);
    expect(appended).toHaveLength(20);
    // Those of one journal that wait together are written together: each sees at most as many as stand before it, and across journals none is hidden.
    for (const [at, entry] of appended.entries()) expect(data(entry)['after']).toBeLessThanOrEqual(at + 1);
    expect(appended.some((entry) => Number(data(entry)['after']) > 1)).toBe(true);
    await expectIntact(home, 's');
  });

  it('numbers entries in the order of the calls and says where they stand', async () => {
    const home = freshHome();
    const journal = await openSession(home, 's');
    const calls = await Promise.all(
      Array.from({ length: 40 }, (_, i) => journal.append(i % 3 === 0 ? [draft({ i }), draft({ i })] : [draft({ i })])),
    );
    const lines = log(home, 's').toString().split('\n');
    let seq = 1;
    for (const [i, call] of calls.entries()) {
      for (const { seq: at, hash } of call) {
        expect(at).toBe(seq++);
        expect(blake3Hex(Buffer.from(lines[at] as string))).toBe(hash);
        expect(data(readEntry(Buffer.from(lines[at] as string)))['i']).toBe(i);
      }
    }
    expect([journal.entries, journal.head]).toEqual([seq, calls[39]?.at(-1)?.hash]);
    await journal.close();
    await expectIntact(home, 's');
  });

  it("refuses a bad draft, and with it its whole call, and nobody else's", async () => {
    const home = freshHome();
    const journal = await openSession(home, 's');
    const results = await Promise.allSettled([
      journal.append([draft({ good: 1 })]),
      journal.append([draft(), { ...draft(), data: '{"a":1,"a":2}' }]),
      journal.append([{ ...draft(), source: 'effect:' }]),
      journal.append([draft({ good: 2 })]),
    ]);
    expect(
      results.map((r) => (r.status === 'fulfilled' ? r.value.map((a) => a.seq) : (r.reason as { code: string }).code)),
    ).toEqual([[1], 'data', 'source', [2]]);
    await journal.close();
    await expectIntact(home, 's');
  });

  it('writes those who wait together with one write, and syncs them with one fdatasync', async () => {
    const home = freshHome();
    let [writes, syncs] = [0, 0];
    const disk: Disk = {
      ...realDisk,
      write: (...args) => (writes++, realDisk.write(...args)),
      datasync: (fd) => (syncs++, realDisk.datasync(fd)),
    };
    const journal = await openSession(home, 's', { disk });
    [writes, syncs] = [0, 0];
    await Promise.all(Array.from({ length: 100 }, () => journal.append([draft()], { sync: true })));
    expect(writes).toBe(1);
    expect(syncs).toBeLessThanOrEqual(2);
    await journal.sync(); // nothing new: no call
    expect(syncs).toBeLessThanOrEqual(2);
    await journal.close();
  });

  it('begun in haste, resolves no sync before all that leads to entry 0 is on the disk, and waits for one fdatasync', async () => {
    const home = freshHome();
    const paths: string[] = [];
    let syncs = 0;
    let release: () => void = () => undefined;
    const held = new Promise<void>((resolve) => (release = resolve));
    const disk: Disk = {
      ...realDisk,
      datasync: (fd) => (syncs++, realDisk.datasync(fd)),
      fsyncLater: async (path) => {
        paths.push(path);
        await held;
        await realDisk.fsyncLater(path);
      },
    };
    const journal = await openSession(home, 's', { disk, isHasty: true });
    const keys = home.sessionKeys('s');
    expect(paths.toSorted()).toEqual(
      [join(keys, '0.key'), keys, join(home.keys, 'sessions'), home.sessionDir('s'), home.sessions].toSorted(),
    );
    let isSynced = false;
    const appended = journal.append([draft()], { sync: true }).then(() => (isSynced = true));
    while (syncs === 0) await new Promise((resolve) => setImmediate(resolve));
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect([isSynced, journal.durable.entries]).toEqual([false, 0]);
    release();
    await appended;
    expect([syncs, journal.durable.entries]).toEqual([1, 2]);
    await journal.close({ seal: true });
    await expectIntact(home, 's');
  });

  it('ends with one write and one fdatasync, the next key synced beside it, and destroys the old one at its close', async () => {
    const home = freshHome();
    const calls: string[] = [];
    const disk: Disk = {
      ...realDisk,
      write: (...args) => (calls.push('write'), realDisk.write(...args)),
      datasync: (fd) => (calls.push('datasync'), realDisk.datasync(fd)),
      fsync: (fd) => (calls.push('fsync'), realDisk.fsync(fd)),
      fsyncLater: (path) => (calls.push(path.slice(home.root.length)), realDisk.fsyncLater(path)),
    };
    const journal = await openSession(home, 's', { disk });
    await journal.append([draft()], { sync: true });
    calls.length = 0;
    await journal.end([draft(), draft()]);
    expect(calls.toSorted()).toEqual(
      ['write', 'datasync', '/keys/sessions/s/1.key', '/keys/sessions/s', '/keys/sessions'].toSorted(),
    );
    expect([journal.durable.entries, journal.unsealed, keyFiles(home, 's')]).toEqual([5, 0, ['0.key', '1.key']]);
    await journal.close({ seal: true });
    expect(keyFiles(home, 's')).toEqual(['1.key']);
    expect((await expectIntact(home, 's')).entries).toBe(5);
    expect(readHead(home, 's')?.entries).toBe(5);
  });

  it('has the key of its last seal made ahead of need; one that somebody replaced meanwhile is made anew', async () => {
    const home = freshHome();
    for (const isReplaced of [false, true]) {
      const session = `s${isReplaced}`;
      let later: string[] = [];
      const disk: Disk = { ...realDisk, fsyncLater: (path) => (later.push(path), realDisk.fsyncLater(path)) };
      const journal = await openSession(home, session, { disk });
      await journal.ready();
      expect(keyFiles(home, session)).toEqual(['0.key', '1.key']);
      expect(later).toHaveLength(3);
      if (isReplaced) {
        const path = join(home.sessionKeys(session), '1.key');
        const bytes = readFileSync(path);
        rmSync(path);
        writeFileSync(path, bytes, { mode: 0o600 });
      }
      later = [];
      await journal.end([draft()]);
      expect(later).toHaveLength(isReplaced ? 3 : 0);
      await journal.close();
      await expectIntact(home, session);
      // The key that the seal names is the one on the disk.
      const again = await openSession(home, session);
      await again.append([draft()]);
      await again.close({ seal: true });
      await expectIntact(home, session);
    }
  });

  it('is taken up again where it was killed with the key of its next seal made', async () => {
    const home = freshHome();
    const journal = await openSession(home, 's');
    await journal.append([draft()], { sync: true });
    await journal.ready();
    // Its process is gone: nothing of it is closed.
    const again = await openSession(home, 's');
    expect(keyFiles(home, 's')).toEqual(['0.key']);
    await again.append([draft()]);
    await again.close({ seal: true });
    await expectIntact(home, 's');
  });

  it('never resolves a sync before the entries appended until then are on the disk', async () => {
    const home = freshHome();
    const held: (() => void)[] = [];
    const sizes: number[] = [];
    let hold = false;
    const disk: Disk = {
      ...realDisk,
      datasync: async (fd) => {
        const size = statSync(home.logFile('s')).size;
        if (hold) await new Promise<void>((resolve) => held.push(resolve));
        await realDisk.datasync(fd);
        sizes.push(size);
      },
    };
    const journal = await openSession(home, 's', { disk });
    hold = true;
    const synced: string[] = [];
    const first = journal.append([draft()], { sync: true }).then(() => synced.push('first'));
    while (held.length === 0) await new Promise((resolve) => setImmediate(resolve));
    // Comes while the first fdatasync is under way, which may or may not cover it: it must wait for another.
    const second = journal.append([draft()], { sync: true }).then(() => synced.push('second'));
    while (journal.entries < 3) await new Promise((resolve) => setImmediate(resolve));
    held.shift()?.();
    await first;
    expect(synced).toEqual(['first']);
    expect(journal.durable.entries).toBe(2);
    while (held.length === 0) await new Promise((resolve) => setImmediate(resolve));
    held.shift()?.();
    await second;
    expect(sizes.at(-1)).toBe(log(home, 's').length);
    hold = false;
    await journal.close();
  });

  it('keeps the payload as it was said', async () => {
    const home = freshHome();
    const said = '{"n":1.0e+2,"big":123456789012345678901234567890,"s":"\\u00e9é\\ud800\\/ ","nested":{"z":1,"a":[ ]}}';
    const journal = await openSession(home, 's');
    await journal.append([{ ...draft(), data: said }]);
    await journal.close();
    expect(log(home, 's').toString()).toContain(`"data":${said}`);
    await expectIntact(home, 's');
  });

  it('is refused once the journal is closed', async () => {
    const home = freshHome();
    const journal = await openSession(home, 's');
    const last = journal.append([draft()]);
    await journal.close();
    await journal.close();
    expect((await last)[0]?.seq).toBe(1);
    await expect(journal.append([draft()])).rejects.toMatchObject({ code: 'stopped' });
    await expect(journal.sync()).rejects.toMatchObject({ code: 'stopped' });
  });
});
