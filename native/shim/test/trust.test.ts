import { spawnSync } from 'node:child_process';
import { chmodSync, copyFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { answer, builds, compiled, Rig, tool, type Ended } from './rig.js';

function homedirOf(): string {
  const row = readFileSync('/etc/passwd', 'utf8')
    .split('\n')
    .find((line) => line.split(':')[2] === String(process.geteuid?.()));
  return row?.split(':')[5] ?? '';
}

(compiled ? describe : describe.skip).each(builds)('whom the shim trusts, %s build', (_name, shim) => {
  let rig: Rig;
  beforeEach(() => {
    rig = new Rig(shim);
  });
  afterEach(() => rig.close());

  describe('in a registration for all users', () => {
    const forAll = { args: ['--agent', 'claude-code'] };

    it('finds the home by ND7_HOME, and by the password file without it', async () => {
      await rig.listen(() => answer(0, 'here'));
      expect((await rig.run('{}', { ...forAll, env: { ND7_HOME: rig.home } })).stdout).toBe('here');
      // The password file's home of this user has no recorder of this test; HOME is not asked where there is a row.
      const trace = spawnSync('strace', ['-f', '-e', 'trace=openat', shim, ...forAll.args], {
        input: '{}',
        encoding: 'utf8',
        env: { HOME: rig.home, ND7_HOME: 'relative' },
      });
      if (trace.error === undefined && !trace.stderr.includes('ptrace'))
        expect(trace.stderr).toContain(`"${homedirOf()}/.nd7/run/shim.conf"`);
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
