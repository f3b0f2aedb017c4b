import { spawnSync } from 'node:child_process';
import { statSync } from 'node:fs';
import { realDisk, type Disk } from './disk.js';
import { DIST, draft, entries, expectIntact, freshHome, keyFiles, log, removeHomes } from './journal.fixture.js';
import { openSession } from './open.js';
import { readHead } from './read.js';

afterAll(removeHomes);

const errno = (code: string): Error => Object.assign(new Error(`${code}: pretended`), { code });

type Call = 'write' | 'truncate' | 'datasync' | 'fsync' | 'fsyncLater' | 'rename';

/** A disk whose calls fail while `broken` says so. */
function breakable(): {
  disk: Disk;
  broken: Partial<Record<Call, string>>;
  calls: string[];
  short: number;
} {
  const rig = {
    broken: {} as Partial<Record<Call, string>>,
    calls: [] as string[],
    /** A failing write writes so many bytes first. */
    short: 0,
    disk: undefined as unknown as Disk,
  };
  const fails = (call: keyof typeof rig.broken): void => {
    rig.calls.push(call);
    const code = rig.broken[call];
    if (code !== undefined) throw errno(code);
  };
  rig.disk = {
    ...realDisk,
    write: (fd, bytes, position) => {
      if (rig.broken.write !== undefined && rig.short > 0) {
        const n = Math.min(rig.short, bytes.length);
        rig.short -= n;
        return realDisk.write(fd, bytes.subarray(0, n), position);
      }
      fails('write');
      return realDisk.write(fd, bytes, position);
    },
    truncate: (fd, size) => (fails('truncate'), realDisk.truncate(fd, size)),
    datasync: async (fd) => (fails('datasync'), realDisk.datasync(fd)),
    fsync: (fd) => (fails('fsync'), realDisk.fsync(fd)),
    fsyncLater: async (path) => (fails('fsyncLater'), realDisk.fsyncLater(path)),
    rename: (from, to) => (fails('rename'), realDisk.rename(from, to)),
  };
  return rig;
}

describe('a full disk', () => {
  it.each(['ENOSPC', 'EDQUOT', 'EFBIG'])(
    '(%s) refuses the entry, uses up no number, and the journal goes on',
    async (code) => {
      const home = freshHome();
      const rig = breakable();
      const journal = await openSession(home, 's', { disk: rig.disk });
      await journal.append([draft()]);
      const before = log(home, 's');
      for (const short of [0, 1, 70]) {
        [rig.broken.write, rig.short] = [code, short];
        await expect(journal.append([draft(), draft()], { sync: true })).rejects.toMatchObject({
          code: 'no-space',
          message: expect.stringContaining('make room') as string,
        });
        expect(log(home, 's')).toEqual(before);
      }
      delete rig.broken.write;
      expect(await journal.append([draft()], { sync: true })).toMatchObject([{ seq: 2 }]);
      await journal.close({ seal: true });
      await expectIntact(home, 's');
    },
  );

  it('at a seal leaves the old key in force, and sealing works once there is room', async () => {
    const home = freshHome();
    const rig = breakable();
    const journal = await openSession(home, 's', { disk: rig.disk });
    await journal.append([draft()]);
    [rig.broken.write, rig.short] = ['ENOSPC', 100];
    await expect(journal.seal()).rejects.toMatchObject({ code: 'no-space' });
    delete rig.broken.write;
    await journal.append([draft()]);
    await journal.seal();
    await journal.close();
    expect(keyFiles(home, 's')).toEqual(['1.key']);
    await expectIntact(home, 's');
  });

  it('at a blob refuses that call only', async () => {
    const home = freshHome();
    const rig = breakable();
    const journal = await openSession(home, 's', { disk: rig.disk });
    rig.broken.write = 'ENOSPC';
    const bad = journal.append([{ ...draft(), blobs: [{ hash: 'a'.repeat(64), bytes: Buffer.alloc(40) }] }]);
    await expect(bad).rejects.toMatchObject({ code: 'no-space', message: expect.stringContaining('blobs') as string });
    delete rig.broken.write;
    expect(await journal.append([draft()])).toMatchObject([{ seq: 1 }]);
    await journal.close();
    await expectIntact(home, 's');
  });

  it('when a session begins says so, and the next try begins it', async () => {
    const home = freshHome();
    const rig = breakable();
    [rig.broken.write, rig.short] = ['ENOSPC', 30];
    await expect(openSession(home, 's', { disk: rig.disk })).rejects.toMatchObject({ code: 'no-space' });
    delete rig.broken.write;
    const journal = await openSession(home, 's', { disk: rig.disk });
    expect(journal.entries).toBe(1);
    await journal.close();
    await expectIntact(home, 's');
  });
});

describe('a failing disk', () => {
  it('that short-writes without an error is written to again', async () => {
    const home = freshHome();
    const disk: Disk = {
      ...realDisk,
      write: (fd, bytes, position) => realDisk.write(fd, bytes.subarray(0, 11), position),
    };
    const journal = await openSession(home, 's', { disk });
    await journal.append([draft(), draft()]);
    await journal.close({ seal: true });
    await expectIntact(home, 's');
  });

  it('(EIO on write) stops the journal; what was there stays', async () => {
    const home = freshHome();
    const rig = breakable();
    const journal = await openSession(home, 's', { disk: rig.disk });
    await journal.append([draft()], { sync: true });
    const before = log(home, 's');
    [rig.broken.write, rig.short] = ['EIO', 20];
    await expect(journal.append([draft()])).rejects.toMatchObject({ code: 'io' });
    delete rig.broken.write;
    await expect(journal.append([draft()])).rejects.toMatchObject({ code: 'stopped', cause: { code: 'io' } });
    expect(log(home, 's')).toEqual(before);
    await journal.close();
    await journal.close(); // the second time is nothing, after a failure too
  });

  it('that can neither write nor cut back leaves a torn tail, which the next opening mends', async () => {
    const home = freshHome();
    const rig = breakable();
    const journal = await openSession(home, 's', { disk: rig.disk });
    [rig.broken.write, rig.short, rig.broken.truncate] = ['ENOSPC', 20, 'EIO'];
    await expect(journal.append([draft()])).rejects.toMatchObject({
      code: 'io',
      message: expect.stringContaining('neither') as string,
    });
    await expect(journal.append([draft()])).rejects.toMatchObject({ code: 'stopped' });
    await journal.close();
    const again = await openSession(home, 's');
    expect(again.tornTails).toBe(1);
    await again.append([draft()]);
    await again.close();
    await expectIntact(home, 's');
  });

  it('(fdatasync) stops the journal, tells everybody who waits, and is never asked again', async () => {
    const home = freshHome();
    const rig = breakable();
    const journal = await openSession(home, 's', { disk: rig.disk });
    await journal.append([draft()]);
    rig.broken.datasync = 'EIO';
    rig.calls.length = 0;
    const results = await Promise.allSettled([
      journal.append([draft()], { sync: true }),
      journal.append([draft()], { sync: true }),
      journal.sync(),
    ]);
    expect(results.map((r) => r.status)).toEqual(['rejected', 'rejected', 'rejected']);
    delete rig.broken.datasync;
    await expect(journal.sync()).rejects.toMatchObject({ code: 'stopped', cause: { code: 'io' } });
    await expect(journal.seal()).rejects.toMatchObject({ code: 'stopped' });
    await journal.maintain();
    await journal.close({ seal: true });
    expect(rig.calls.filter((c) => c === 'datasync')).toHaveLength(1);
    expect(journal.stopped?.message).toMatch(/could not be made durable: EIO/);
  });

  it('(fsync of what a hasty beginning left) fails the first sync, and the journal stops', async () => {
    const home = freshHome();
    const rig = breakable();
    rig.broken.fsyncLater = 'EIO';
    const journal = await openSession(home, 's', { disk: rig.disk, isHasty: true });
    expect(journal.durable).toMatchObject({ entries: 0 });
    expect(rig.calls.filter((call) => /sync/.test(call))).toEqual(Array(5).fill('fsyncLater'));
    await expect(journal.append([draft()], { sync: true })).rejects.toMatchObject({ code: 'io' });
    delete rig.broken.fsyncLater;
    await expect(journal.sync()).rejects.toMatchObject({ code: 'stopped' });
    expect(readHead(home, 's')).toBeUndefined();
    await journal.close();
  });

  it('a seal whose fdatasync fails destroys no key', async () => {
    const home = freshHome();
    const rig = breakable();
    const journal = await openSession(home, 's', { disk: rig.disk });
    await journal.append([draft()], { sync: true });
    rig.broken.datasync = 'EIO';
    await expect(journal.seal()).rejects.toMatchObject({ code: 'io' });
    expect(keyFiles(home, 's')).toEqual(['0.key', '1.key']);
    await journal.close();
    const again = await openSession(home, 's');
    expect(keyFiles(home, 's')).toEqual(['1.key']);
    await again.close();
    await expectIntact(home, 's');
  });

  it.each(['fsync', 'rename'] as const)(
    '(%s of head.json) fails the seal, keeps the old head whole, and can be asked again',
    async (call) => {
      const home = freshHome();
      const rig = breakable();
      const journal = await openSession(home, 's', { disk: rig.disk });
      await journal.append([draft()]);
      await journal.seal();
      const before = readHead(home, 's');
      await journal.append([draft()]);
      rig.broken[call] = 'EIO';
      await expect(journal.seal()).rejects.toThrow(/EIO/);
      expect(readHead(home, 's')).toEqual(before);
      rig.broken = {};
      await journal.append([draft()]);
      await journal.maintain();
      expect(readHead(home, 's')?.entries).toBe(journal.entries);
      await journal.close();
      await expectIntact(home, 's');
    },
  );
});

/** What strace can do here: it needs ptrace, which some containers refuse. */
const canTrace = spawnSync('strace', ['-e', 'inject=getppid:error=EIO', 'true']).status === 0;

(canTrace ? describe : describe.skip)('the real system calls, failed by the kernel (needs strace)', () => {
  const CHILD = `
    const [dist, home] = process.argv.slice(1);
    const { openHome, openSession } = await import(dist);
    const said = [];
    const draft = { time: '2026-11-29T19:41:00.123Z', source: 'intent:claude-code', kind: 'tool.before', data: '{}' };
    try {
      const journal = await openSession(openHome(home), 's');
      for (let i = 0; i < 4; i++) await journal.append([draft], { sync: true }).then((a) => said.push(a[0].seq), (e) => said.push(e.code));
      await journal.close().catch((e) => said.push('close ' + e.code));
    } catch (e) { said.push('open ' + (e.code ?? e)); }
    console.log(JSON.stringify(said));`;

  it.each([
    ['fdatasync:error=EIO:when=3', [1, 'io', 'stopped', 'stopped']],
    ['fdatasync:error=ENOSPC:when=2', ['io', 'stopped', 'stopped', 'stopped']],
    ['fdatasync:error=EIO:when=1', ['open io']],
  ])(
    '%s',
    async (inject, expected) => {
      const home = freshHome();
      const run = spawnSync(
        'strace',
        [
          '-f',
          '-qq',
          '-o',
          '/dev/null',
          '-e',
          'trace=fdatasync',
          '-e',
          `inject=${inject}`,
          process.execPath,
          '--input-type=module',
          '-e',
          CHILD,
          DIST,
          home.root,
        ],
        { encoding: 'utf8', env: { ...process.env, UV_THREADPOOL_SIZE: '1' } }, // strace counts calls per thread
      );
      expect(run.stderr).toBe('');
      expect(JSON.parse(run.stdout)).toEqual(expected);
      expect(statSync(home.logFile('s')).size).toBeGreaterThan(0);
      const again = await openSession(home, 's');
      await again.append([draft()]);
      await again.close();
      await expectIntact(home, 's');
      expect(entries(home, 's').length).toBeGreaterThan(1);
    },
    60_000,
  );
});
