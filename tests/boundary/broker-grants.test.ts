// Tier T2 can change no view: what is granted to be read is opened by the supervisor. Where it is asked about every read, since a login of the agent's is hidden in a folder that may be written, the grant reaches all inside; else commands alone.
import { once } from 'node:events';
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Desk, USERS } from './broker.fixture.js';

/** Looks as often as it is told to, by `look.N`; three commands and the agent itself each time, and commands that began before and while. */
const LOOKS = `
key=$HOME/.ssh/id_own
read_it='cat "$HOME/.ssh/id_own" 2>/dev/null || echo hidden'
wait_for() { echo "until [ -e $1 ]; do sleep 0.05; done;"; }
$S -c "echo > began.0; $(wait_for look.1) { $read_it; } > before; mv before before.1" &
for n in 0 1 2; do
  until [ -e look.$n ]; do sleep 0.05; done
  [ $n != 1 ] || $S -c "echo > began.1; $(wait_for look.2) { $read_it; } > while.1; mv while.1 while" &
  for i in 1 2 3; do $S -c "$read_it"; done > seen
  cat "$key" >> seen 2>/dev/null || echo hidden >> seen
  [ $n != 1 ] || until [ -e began.1 ]; do sleep 0.05; done
  mv seen seen.$n
done
wait
`;

(process.platform === 'linux' ? describe : describe.skip).each(USERS)(
  'T2: a hidden file that is granted, as %s',
  (_name, user) => {
    let desk: Desk;
    beforeEach(() => {
      desk = new Desk(user, 'T2');
    });
    afterEach(() => desk.close());

    const appears = async (name: string): Promise<string> => {
      const path = join(desk.project, name);
      for (let i = 0; i < 200 && !existsSync(path); i++) await new Promise((done) => setTimeout(done, 100));
      return readFileSync(path, 'utf8');
    };
    const look = (n: number): Promise<string> => {
      writeFileSync(join(desk.project, `look.${n}`), '');
      return appears(`seen.${n}`);
    };

    it('is read by commands alone where nothing else is asked about, those that begin while it is granted', async () => {
      // Nothing is hidden in a folder that may be written: the agent has its login, and the home lies in no temporary folder.
      desk.close();
      desk = new Desk(user, 'T2', '/var/tmp');
      desk.policy({ packs: { 'claude-code-login': true } });
      const key = join(desk.home, '.ssh/id_own');
      spawnSync('sh', ['-c', 'umask 077; mkdir "$HOME/.ssh"; echo SECRET > "$HOME/.ssh/id_own"'], {
        env: desk.environment,
        ...user,
      });
      const over = once(desk.start(LOOKS), 'exit');
      await appears('began.0');
      expect(await look(0)).toBe('hidden\nhidden\nhidden\nhidden\n');
      // The person is told whom it reaches.
      expect(desk.nd7('allow', '--yes', 'read', key)).toMatchObject({
        status: 0,
        stdout: expect.stringMatching(/commands/) as string,
      });
      // Three commands, and then the agent itself.
      expect(await look(1)).toBe('SECRET\nSECRET\nSECRET\nhidden\n');
      expect(await appears('before.1')).toBe('hidden\n');
      expect(desk.nd7('revoke', '--all').status).toBe(0);
      expect(await look(2)).toBe('hidden\nhidden\nhidden\nhidden\n');
      await over;
      expect(await appears('while')).toBe('hidden\n');
      expect(desk.of('exec').map(({ how }) => how)).toEqual(Array.from({ length: 11 }, () => 'broker'));
    });

    it('is read by commands that begin while it is granted, not before and not after', async () => {
      const key = join(desk.home, '.ssh/id_own');
      spawnSync('sh', ['-c', 'umask 077; mkdir "$HOME/.ssh"; echo SECRET > "$HOME/.ssh/id_own"'], {
        env: desk.environment,
        ...user,
      });
      const over = once(desk.start(LOOKS), 'exit');
      await appears('began.0');
      expect(await look(0)).toBe('hidden\nhidden\nhidden\nhidden\n');
      expect(desk.nd7('allow', '--yes', 'read', key)).toMatchObject({
        status: 0,
        stdout: expect.stringMatching(/^g1/) as string,
      });
      expect(await look(1)).toBe('SECRET\nSECRET\nSECRET\nSECRET\n');
      expect(await appears('before.1')).toBe('SECRET\n');
      expect(desk.nd7('revoke', '--all').status).toBe(0);
      expect(await look(2)).toBe('hidden\nhidden\nhidden\nhidden\n');
      await over;
      // A command that began while it was granted has it no longer either.
      expect(await appears('while')).toBe('hidden\n');
      expect(desk.of('exec').map(({ how }) => how)).toEqual(Array.from({ length: 11 }, () => 'broker'));
      expect(desk.entries().flatMap(({ source, kind }) => (source === 'decision:grant' ? [kind] : []))).toEqual([
        'grant',
        'revoke',
      ]);
    });
  },
);
