import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  rmSync,
  statSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DIST, freshHome, removeHomes } from './journal.fixture.js';
import { Home, openHome } from './home.js';
import { openSession } from './open.js';
import { machineKey } from './session-keys.js';

let base: string;
beforeEach(() => {
  base = mkdtempSync(join(tmpdir(), 'nd7-home-'));
});
afterEach(() => rmSync(base, { recursive: true, force: true }));
afterAll(removeHomes);

const root = process.geteuid?.() === 0;
const code = (work: () => unknown): string => {
  try {
    work();
    return 'no error';
  } catch (error) {
    return (error as { code?: string }).code ?? String(error);
  }
};

describe('the home folder', () => {
  it('is made, parents and all, private whatever the umask is', () => {
    const before = process.umask(0);
    try {
      const home = openHome(join(base, 'a b', 'ü', '.nd7'));
      for (const path of [home.root, home.sessions, home.blobs, home.run, home.keys, home.outbox])
        expect(statSync(path).mode & 0o777).toBe(0o700);
    } finally {
      process.umask(before);
    }
  });

  it('that is empty and open to others is closed; one with something in it is refused', () => {
    const path = join(base, 'h');
    mkdirSync(path, { mode: 0o755 });
    chmodSync(path, 0o755);
    openHome(path);
    expect(statSync(path).mode & 0o777).toBe(0o700);
    chmodSync(path, 0o750);
    expect(() => openHome(path)).toThrow(/is open to other users: run chmod 700 /);
  });

  it('that is no folder is refused, and so is one with a file in the way', () => {
    writeFileSync(join(base, 'file'), '');
    expect(code(() => openHome(join(base, 'file')))).toBe('not-a-folder');
    expect(code(() => openHome(join(base, 'file', 'below')))).toBe('not-a-folder');
    symlinkSync(join(base, 'nowhere'), join(base, 'dangling'));
    expect(code(() => openHome(join(base, 'dangling')))).toMatch(/not-a-folder|unreadable/);
  });

  it('of another user is refused, by root too', () => {
    if (root) {
      const path = join(base, 'theirs');
      mkdirSync(path, { mode: 0o700 });
      chownSync(path, 65534, 65534);
      expect(() => openHome(path)).toThrow(/belongs to user 65534, and this is user 0: run nd7 as that user/);
    } else {
      expect(code(() => openHome('/'))).toBe('wrong-owner');
    }
  });

  it('that cannot be written is named, with what to do', () => {
    // A user without rights: this one, or from root another.
    const path = join(base, 'fixed');
    mkdirSync(path, { mode: 0o555 });
    chmodSync(base, 0o755);
    chmodSync(path, 0o555);
    const program = `import(${JSON.stringify(DIST)}).then((j) => j.openHome(${JSON.stringify(join(path, 'home'))})).then(() => console.log('made'), (e) => console.log(e.code, e.message));`;
    const as = root ? { uid: 65534, gid: 65534 } : {};
    const said = spawnSync(process.execPath, ['-e', program], { encoding: 'utf8', ...as, cwd: '/' });
    // The checkout itself may be out of the other user's reach: then the program cannot even be loaded, which is no finding here.
    if (!said.stdout.startsWith('ERR_MODULE'))
      expect(said.stdout).toMatch(/^read-only .*home cannot be written: mend its permissions, or set ND7_HOME/);
  });

  it('on a read-only file system is named as that', () => {
    // /proc and /sys refuse with other errnos; a read-only bind mount needs root and a mount namespace of its own.
    const program = `import(${JSON.stringify(DIST)}).then((j) => j.openHome(process.argv[1])).then(() => console.log('made'), (e) => console.log(e.code, e.message));`;
    const script = `mount --bind ${base} ${base} && mount -o remount,bind,ro ${base} && exec ${process.execPath} -e '${program}' ${join(base, 'home')}`;
    const said = spawnSync('unshare', ['-m', 'sh', '-c', script], { encoding: 'utf8' });
    if (said.status === 0) expect(said.stdout).toMatch(/^read-only .*home is on a read-only file system: set ND7_HOME/);
    expect(existsSync(join(base, 'home'))).toBe(false);
  });
});

describe('paths', () => {
  it.each(['', '.', '..', '../x', 'a/b', '.hidden', 'a\0b', 'ü', 'x'.repeat(129), '-x', 'a b', 'a\n'])(
    'are never made of %j',
    async (id) => {
      const home = freshHome();
      expect(code(() => home.sessionDir(id))).toBe('session-id');
      expect(code(() => home.sessionKeys(id))).toBe('session-id');
      expect(code(() => home.outboxDir(id))).toBe('session-id');
      await expect(openSession(home, id)).rejects.toMatchObject({ code: 'session-id' });
    },
  );

  it('can be told without a home that exists', () => {
    expect(new Home('/nowhere').logFile('a.b-c_1')).toBe('/nowhere/sessions/a.b-c_1/log.jsonl');
  });
});

describe('the machine key', () => {
  it('is made once, and is the same ever after', () => {
    const home = freshHome();
    const key = machineKey(home).publicKey;
    expect(machineKey(home).publicKey).toBe(key);
    expect(statSync(home.machineKeyFile).mode & 0o777).toBe(0o600);
  });

  it('survives a crash while it is being made', () => {
    const home = freshHome();
    writeFileSync(`${home.machineKeyFile}.new`, 'half a key', { mode: 0o600 });
    expect(machineKey(home).publicKey).toMatch(/^[0-9a-f]{64}$/);
    expect(existsSync(`${home.machineKeyFile}.new`)).toBe(false);
  });

  it('is not silently replaced on a machine that is enrolled', () => {
    const home = freshHome();
    machineKey(home);
    writeFileSync(home.vaultFile, '{}', { mode: 0o600 });
    unlinkSync(home.machineKeyFile);
    expect(() => machineKey(home)).toThrow(/this machine is enrolled .* is gone: put it back/);
    expect(existsSync(home.machineKeyFile)).toBe(false);
  });

  it('that others can read is refused, with what to do', () => {
    const home = freshHome();
    machineKey(home);
    chmodSync(home.machineKeyFile, 0o644);
    expect(() => machineKey(home)).toThrow(/chmod 600/);
  });
});
