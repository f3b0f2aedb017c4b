// A box of bubblewrap's at a terminal, under signals and when nd7 is killed: as a program that was started without one.
import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { BIN, REPOSITORY, until } from '../testing/recorder.fixture.js';

const PROBES = join(REPOSITORY, 'native/probes/build/nd7-probes');
const has = (...words: [string, ...string[]]): boolean => spawnSync(words[0], words.slice(1)).status === 0;
const lacks = !has('bwrap', '--ro-bind', '/', '/', '--unshare-net', 'true')
  ? 'bubblewrap makes no box here'
  : has('script', '-qec', 'true', '/dev/null')
    ? undefined
    : 'no script (util-linux)';
const group = lacks === undefined ? describe : describe.skip;

let user: string;
let project: string;
const children: ChildProcess[] = [];
beforeEach(() => {
  user = realpathSync(mkdtempSync('/var/tmp/nd7-box-'));
  project = join(user, 'project');
  mkdirSync(project);
  mkdirSync(join(user, '.nd7'), { mode: 0o700 });
});
afterEach(() => {
  for (const child of children.splice(0)) child.kill('SIGKILL');
  rmSync(user, { recursive: true, force: true, maxRetries: 10, retryDelay: 50 });
});

const env = () => ({ PATH: '/usr/local/bin:/usr/bin:/bin', HOME: user, TERM: 'xterm' });
const words = (script: string): string[] => [BIN, 'run', '--in', 'bwrap', '--', 'sh', '-c', script];

function start(command: string, args: string[]) {
  const child = spawn(command, args, { cwd: project, env: env(), stdio: ['pipe', 'pipe', 'inherit'] });
  children.push(child);
  let text = '';
  child.stdout.on('data', (bytes: Buffer) => (text += bytes.toString()));
  const closed = once(child, 'close');
  return { child, closed, said: () => text };
}
/** At a terminal of its own. */
const atTerminal = (script: string) => {
  const quoted = [process.execPath, ...words(script)].map((word) => `'${word.replaceAll("'", "'\\''")}'`);
  return start('script', ['-qefc', `exec ${quoted.join(' ')}`, '/dev/null']);
};

group(`nd7 run --in bwrap${lacks === undefined ? '' : ` (${lacks})`}`, () => {
  it('leaves the terminal’s Ctrl-C to the program, which ends as it likes', async () => {
    const { child, closed, said } = atTerminal('trap "echo told; exit 9" INT; echo up; while :; do sleep 0.1; done');
    await until('it is up', () => said().includes('up'));
    child.stdin.write('\x03');
    expect((await closed)[0]).toBe(9);
    expect(said().split('told')).toHaveLength(2);
  });

  it.each(['SIGTERM', 'SIGHUP', 'SIGUSR1', 'SIGINT'] as const)(
    'passes %s on once, and ends as the program does',
    async (name) => {
      const script = `trap 'echo told >> n' ${name.slice(3)}; echo up; while [ ! -e n ]; do sleep 0.1; done; sleep 0.3; exit 9`;
      const { child, closed, said } = start(process.execPath, words(script));
      await until('it is up', () => said().includes('up'));
      child.kill(name);
      expect(await closed).toEqual([9, null]);
      expect(readFileSync(join(project, 'n'), 'utf8')).toBe('told\n');
    },
  );

  it('ends as one that a signal has ended, and says so in the record', async () => {
    const { child, closed, said } = start(process.execPath, words('echo up; exec sleep 60'));
    await until('it is up', () => said().includes('up'));
    child.kill('SIGTERM');
    expect(await closed).toEqual([143, null]);
    const { stdout } = spawnSync(process.execPath, [BIN, 'sessions', '--json'], { env: env(), encoding: 'utf8' });
    expect(stdout).toContain('run-');
  });

  it('a program that stops itself stops nd7, and goes on with it', async () => {
    const { child, closed, said } = start(process.execPath, words('echo up; kill -STOP $$; echo on; exit 3'));
    await until('it is up', () => said().includes('up'));
    const state = (): string => readFileSync(`/proc/${child.pid}/stat`, 'latin1').split(') ')[1]?.[0] ?? '';
    await until('nd7 has stopped', () => state() === 'T');
    const below = spawnSync('ps', ['-eo', 'pid=,stat=,args='], { encoding: 'utf8' }).stdout;
    const [, stopped] = /^\s*(\d+)\s+T\S*\s+sh -c echo up; kill -STOP/m.exec(below) ?? [];
    process.kill(child.pid ?? 0, 'SIGCONT');
    process.kill(Number(stopped), 'SIGCONT');
    expect(await closed).toEqual([3, null]);
    expect(said()).toBe('up\non\n');
  });

  it('ends the box when nd7 is killed', async () => {
    const { child, closed, said } = start(
      process.execPath,
      words('echo up; while :; do echo x >> beat; sleep 0.1; done'),
    );
    await until('it is up', () => said().includes('up'));
    const beats = (): number => statSync(join(project, 'beat')).size;
    await sleep(300);
    child.kill('SIGKILL');
    await closed;
    await sleep(300);
    const after = beats();
    await sleep(700);
    expect(beats()).toBe(after);
  });

  it('types nothing on the terminal, and its first process is traced by nobody', async () => {
    copyFileSync(PROBES, join(project, 'np'));
    const script =
      './np tiocsti && echo TYPED; ./np ptrace 1 && echo TRACED; sleep 5 & ./np ptrace $! && echo OWN; kill $!';
    const inside = atTerminal(script);
    await inside.closed;
    expect(inside.said()).toContain('OWN');
    expect(inside.said()).not.toMatch(/TYPED|TRACED/);
    // The same attempt where nothing stands in its way, on kernels that have it still.
    const outside = start('script', ['-qefc', `exec ${join(project, 'np')} tiocsti`, '/dev/null']);
    const [code] = await outside.closed;
    const legacy = readFileSync('/proc/sys/dev/tty/legacy_tiocsti', 'latin1').trim();
    expect([legacy, code]).toEqual([legacy, legacy === '1' ? 0 : 1]);
  });

  it('two at once are two sessions, each with its own way out', async () => {
    const script = `curl -sS -m 5 -o /dev/null -w '%{http_connect}' https://example.com; true`;
    const two = [start(process.execPath, words(script)), start(process.execPath, words(script))];
    expect(await Promise.all(two.map(({ closed }) => closed))).toEqual([
      [0, null],
      [0, null],
    ]);
    expect(two.map(({ said }) => said())).toEqual(['403', '403']);
  });

  it('shows nothing of nd7’s own in a view that the person gives either', () => {
    const view = ['--bind', '/', '/', '--dev', '/dev', '--proc', '/proc'].map((word) => `--in-arg=${word}`);
    const args = [BIN, 'run', '--in', 'bwrap', ...view, '--', 'sh', '-c', 'ls -A ../.nd7 ../.nd7/run; touch ../.nd7/x'];
    const { stdout } = spawnSync(process.execPath, args, { cwd: project, env: env(), encoding: 'utf8' });
    expect(stdout).toMatch(/bin\nrun\n/);
    expect(stdout).not.toMatch(/sessions|policy|keys|control|c-[0-9a-f]{16}/);
    expect(has('test', '-e', join(user, '.nd7/x'))).toBe(false);
  });
});
