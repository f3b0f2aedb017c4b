import { spawn, spawnSync } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { answer, builds, compiled, end, Rig, tool, until, type Ended } from './rig.js';

function homeOfThisUser(): string {
  const row = readFileSync('/etc/passwd', 'utf8')
    .split('\n')
    .find((line) => line.split(':')[2] === String(process.geteuid?.()));
  return row?.split(':')[5] ?? '';
}

/** A container may have strace and not let it trace. */
const canTrace = spawnSync('strace', ['-o', '/dev/null', 'true']).status === 0;

/** Whether root can make an ordinary user's namespace here. */
const canNest =
  process.getuid?.() === 0 &&
  spawnSync('unshare', ['-U', '--map-current-user', 'true'], { uid: 54_321, gid: 54_321, cwd: '/' }).status === 0;

(compiled ? describe : describe.skip).each(builds)('whom the shim trusts, %s build', (_name, shim) => {
  let rig: Rig;
  beforeEach(() => {
    rig = new Rig(shim);
  });
  afterEach(() => rig.close());

  describe('in a registration for all users', () => {
    const forAll = { args: ['--agent', 'claude-code'] };

    // Nothing is said to it: the row's home may be one that somebody records into.
    (canTrace ? it : it.skip)(
      'finds the home by the password file, whatever the environment says (strace)',
      async () => {
        await rig.listen(() => answer(0, 'here'));
        const child = spawn('strace', ['-e', 'trace=openat', shim, ...forAll.args], {
          stdio: ['pipe', 'ignore', 'pipe'],
          env: { PATH: process.env['PATH'] ?? '', HOME: rig.home, ND7_HOME: rig.home },
        });
        let trace = '';
        child.stderr.on('data', (chunk: Buffer) => (trace += String(chunk)));
        try {
          await until(() => /openat\([^\n]*run\/shim\.conf"/.test(trace));
        } finally {
          child.kill('SIGKILL');
        }
        expect(trace).toContain(`"${homeOfThisUser()}/.nd7/run/shim.conf"`);
        expect(trace).not.toContain(rig.home);
        expect(rig.received).toEqual([]);
      },
    );

    (process.getuid?.() === 0 ? it : it.skip)('finds it by HOME for a user without a row (root)', async () => {
      const nobodys = 54_321;
      await rig.listen(() => answer(0, 'here'));
      for (const path of ['', 'run', 'run/hook']) chownSync(rig.path(path), nobodys, nobodys);
      const own = mkdtempSync(join(tmpdir(), 'nd7-shim-'));
      chmodSync(own, 0o755);
      copyFileSync(shim, join(own, 'nd7-shim'));
      const link = join(own, 'user');
      mkdirSync(link, { mode: 0o755 });
      symlinkSync(rig.home, join(link, '.nd7'));
      const ran = spawn(join(own, 'nd7-shim'), forAll.args, {
        uid: nobodys,
        gid: nobodys,
        cwd: '/',
        env: { HOME: link, ND7_HOME: '/nowhere', ASAN_OPTIONS: 'detect_leaks=0' },
      });
      const ended = end(ran);
      ran.stdin.end('{}');
      expect((await ended).stdout).toBe('here');
      rmSync(own, { recursive: true });
    });

    it('the settings beside the binary are read too, and a required there holds', async () => {
      const own = rig.path('lib');
      mkdirSync(own, { mode: 0o755 });
      const copy = join(own, 'nd7-shim');
      copyFileSync(shim, copy);
      chmodSync(copy, 0o755);
      writeFileSync(join(own, 'shim.conf'), 'recording=required\n', { mode: 0o644 });
      rig.conf({ recording: 'best-effort' });
      const managed = new Rig(copy);
      try {
        expect((await managed.run(tool(), { args: ['--home', rig.home, '--agent', 'claude-code'] })).code).toBe(2);
        chmodSync(join(own, 'shim.conf'), 0o666);
        expect((await managed.run(tool(), { args: ['--home', rig.home, '--agent', 'claude-code'] })).stderr).toContain(
          'lib/shim.conf can be changed',
        );
      } finally {
        await managed.close();
      }
    });
  });

  (canNest ? it : it.skip)(
    'in a user namespace, where root’s files look like nobody’s: the administrator’s settings hold, another user’s do outside',
    async () => {
      const user = 54_321;
      await rig.listen(() => answer(0, 'here'));
      for (const path of ['', 'run', 'run/hook']) chownSync(rig.path(path), user, user);
      const own = mkdtempSync(join(tmpdir(), 'nd7-shim-'));
      chmodSync(own, 0o755);
      copyFileSync(shim, join(own, 'nd7-shim'));
      writeFileSync(join(own, 'shim.conf'), 'recording=required\n', { mode: 0o644 });
      const run = async (...before: string[]): Promise<Ended> => {
        const [program = '', ...args] = [...before, join(own, 'nd7-shim'), '--home', rig.home, '--agent', 'codex'];
        const child = spawn(program, args, {
          uid: user,
          gid: user,
          cwd: '/',
          env: { ...process.env, ASAN_OPTIONS: 'detect_leaks=0' },
        });
        const ended = end(child);
        child.stdin.end('{}');
        return ended;
      };
      expect(await run('unshare', '-U', '--map-current-user')).toMatchObject({ code: 0, stdout: 'here' });
      chownSync(join(own, 'shim.conf'), 54_322, 54_322);
      expect((await run()).stderr).toContain('shim.conf can be changed by other users');
      rmSync(own, { recursive: true });
    },
  );

  describe('refuses to work', () => {
    const refused = (ended: Ended, code = 1): void => {
      expect([ended.code, ended.stdout.includes('deny')]).toEqual([code, code === 2]);
      expect(ended.stderr).toMatch(/can be changed by other users.*chmod go-w/);
      expect(rig.received).toEqual([]);
    };

    it.each(['', 'run', 'run/shim.conf'])('where others can write to the home: %s', async (name) => {
      rig.conf({ recording: 'best-effort' });
      await rig.listen(() => answer(0));
      chmodSync(rig.path(name), 0o720);
      refused(await rig.run(tool()));
    });

    it('where others can write to its own file or folder', async () => {
      await rig.listen(() => answer(0));
      const own = rig.path('bin');
      mkdirSync(own, { mode: 0o755 });
      const copy = join(own, 'nd7-shim');
      copyFileSync(shim, copy);
      chmodSync(copy, 0o755);
      const other = new Rig(copy);
      rmSync(other.home, { recursive: true });
      const at = { args: ['--home', rig.home, '--agent', 'codex'], cwd: rig.home };
      expect((await other.run(tool(), at)).code).toBe(0);
      chmodSync(copy, 0o757);
      rig.received.length = 0;
      refused(await other.run(tool(), at));
      chmodSync(copy, 0o755);
      chmodSync(own, 0o777);
      rig.conf({ recording: 'required' });
      refused(await other.run(tool(), at), 2);
      // Exit 2 at the end of a turn would force the agent on: only what is about to run is denied.
      refused(await other.run(tool({ hook_event_name: 'Stop' }), at), 1);
      expect(
        rig
          .read('run/missed')
          .split('\n')
          .filter((line) => line.includes('others can change its files')),
      ).toHaveLength(3);
    });

    it.each([
      [[]],
      [['--home', 'relative', '--agent', 'x']],
      [['--home', '/tmp']],
      [['--home', '/tmp', '--agent', 'A B']],
      [['--home', '/tmp', '--agent', '../x']],
      [['--what']],
    ])('what it does not know: %j', async (args) => {
      const ended = await rig.run('{}', { args });
      expect([ended.code, ended.stdout]).toEqual([1, '']);
      expect(ended.stderr).toContain('usage:');
    });
  });
});
