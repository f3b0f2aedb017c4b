// The command line as a person or a script meets it: help, mistakes, colour, pipes, Ctrl-C, completion.
import { spawn, spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { capturedIo, recordedHome, removeFolders, said, throwAwayFolder } from '../testing/cli.fixture.js';
import { BIN } from '../testing/recorder.fixture.js';
import { buildProgram, report } from './program.js';

afterAll(removeFolders);

/** Runs the real command with nothing of this process's environment but what finds programs. */
function nd7(home: string, args: string[], env: Record<string, string> = {}) {
  return spawnSync(process.execPath, [BIN, ...args], {
    encoding: 'utf8',
    input: '',
    env: { PATH: process.env['PATH'] ?? '/usr/bin:/bin', HOME: home, ND7_HOME: home, ...env },
  });
}

const ESCAPE = '\u001b[';
const long = () => Array.from({ length: 3000 }, (_, i) => said('prompt', { prompt: `line ${i} ${'x'.repeat(60)}` }));

describe('help', () => {
  it('of every command says what it is for, and that it prints JSON', async () => {
    const program = await buildProgram(capturedIo({ home: '/nonexistent/nd7' }));
    const names = program.commands.map((command) => command.name());
    expect(names).toEqual(
      expect.arrayContaining(['init', 'uninstall', 'status', 'doctor', 'sessions', 'log', 'show', 'verify']),
    );
    expect(names).toEqual(expect.arrayContaining(['enrol', 'ship', 'receipt', 'export', 'recorder', 'complete']));
    for (const command of program.commands) {
      const help = command.helpInformation();
      expect(command.description()).not.toBe('');
      expect(help.split('\n')[0]).toContain(`nd7 ${command.name()}`);
      expect(help).not.toContain('default: []');
      const isSpoken = !['hook', 'complete', 'help'].includes(command.name());
      expect([command.name(), help.split('--json').length - 1]).toEqual([command.name(), isSpoken ? 1 : 0]);
    }
  });

  it('goes to standard output and is no mistake, for the hook too', () => {
    for (const args of [['--help'], ['verify', '--help'], ['hook', '--help'], ['help', 'log'], ['--version']]) {
      const ran = nd7('/nonexistent/nd7', args);
      expect([args, ran.status, ran.stderr, ran.stdout.length > 4]).toEqual([args, 0, '', true]);
    }
    const hook = nd7('/nonexistent/nd7', ['hook', '-h']).stdout;
    for (const option of ['--agent', '--home', '--alone', '--help']) expect(hook).toContain(`  ${option}`.slice(1));
  }, 60_000);
});

describe('a command line that is not understood', () => {
  const mistakes: [string, string[]][] = [
    ['an unknown command', ['nonsense']],
    ['help about an unknown command', ['help', 'nonsense']],
    ['an unknown option', ['verify', '--nope']],
    ['a word too many', ['status', 'x']],
    ['an option that looks like a number', ['show', 's-1', '1', '-x']],
    ['an argument too few', ['show']],
    ['a value that is none', ['log', '--tail', 'many']],
    ['a shell nobody has', ['complete', 'tcsh']],
  ];
  it.each(mistakes)('%s: one message, exit 2', (_what, args) => {
    const ran = nd7('/nonexistent/nd7', args);
    expect([ran.status, ran.stdout]).toEqual([2, '']);
    expect(ran.stderr).toMatch(/^nd7: \S/);
    expect(ran.stderr).not.toContain('    at ');
  });

  it.each([...mistakes.slice(0, -1), ['no command', []] as [string, string[]]])(
    '%s, with --json: one object on standard output and nothing else',
    async (_what, args) => {
      const io = capturedIo({ home: '/nonexistent/nd7', isJson: true });
      const program = await buildProgram(io);
      const error: unknown = await program.parseAsync(['node', 'nd7', '--json', ...args]).catch((e: unknown) => e);
      expect(report(error, io)).toBe(2);
      expect(io.lines).toEqual([]);
      expect(io.values).toEqual([
        { error: expect.objectContaining({ code: 'usage', message: expect.stringMatching(/^[^:\n]+/) as string }) },
      ]);
      const ran = nd7('/nonexistent/nd7', ['--json', ...args]);
      expect([ran.status, ran.stderr]).toEqual([2, '']);
      expect(JSON.parse(ran.stdout)).toEqual(io.values[0]);
    },
  );

  it('verifying all of nothing is a mistake, never a success: the home may be the wrong one', () => {
    const ran = nd7(throwAwayFolder(), ['verify', '--all', '--json']);
    expect(ran.status).toBe(2);
    expect(JSON.parse(ran.stdout)).toMatchObject({ error: { code: 'no-session' } });
  });

  it('an option in the place of the agent’s name is not taken for one', () => {
    const ran = nd7(throwAwayFolder(), ['hook', '--agent', '--json']);
    expect([ran.status, ran.stdout]).toEqual([1, '']);
    expect(ran.stderr).toContain('--json is no name of an agent');
  });
});

describe('what is printed', () => {
  it('has colour only where it is wanted', async () => {
    const home = await recordedHome('s-1', [said('prompt', { prompt: 'hello' })]);
    for (const command of ['log', 'verify', 'sessions', 'status']) {
      expect(nd7(home, [command]).stdout).not.toContain(ESCAPE);
      expect(nd7(home, [command], { FORCE_COLOR: '1', NO_COLOR: '1' }).stdout).not.toContain(ESCAPE);
      expect(nd7(home, [command, '--json'], { FORCE_COLOR: '1' }).stdout).not.toContain(ESCAPE);
    }
    for (const command of ['log', 'verify', 'sessions'])
      expect(nd7(home, [command], { FORCE_COLOR: '1' }).stdout).toContain(ESCAPE);
  }, 120_000);

  it('may be cut short by its reader: no stack, the shell sees a broken pipe', async () => {
    const home = await recordedHome('s-1', long());
    const run = spawnSync(
      'bash',
      ['-c', '"$0" "$1" log s-1 | head -n 1; echo "${PIPESTATUS[0]}"', process.execPath, BIN],
      { encoding: 'utf8', env: { PATH: process.env['PATH'] ?? '/usr/bin:/bin', HOME: home, ND7_HOME: home } },
    );
    expect(run.stderr).toBe('');
    expect(run.stdout.trim().split('\n')).toEqual([expect.stringContaining('session s-1'), '141']);
  }, 60_000);

  it('that goes on ends with Ctrl-C, as a success', async () => {
    const home = await recordedHome('s-1', [said('prompt', { prompt: 'hello' })]);
    const child = spawn(process.execPath, [BIN, 'log', 's-1', '--follow'], {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { PATH: process.env['PATH'] ?? '/usr/bin:/bin', HOME: home, ND7_HOME: home },
    });
    let out = '';
    let err = '';
    child.stderr.on('data', (chunk: Buffer) => (err += String(chunk)));
    const ended = new Promise<number | null>((resolve) => child.once('close', resolve));
    await new Promise<void>((resolve) =>
      child.stdout.on('data', (chunk: Buffer) => {
        out += String(chunk);
        if (out.includes('seal')) resolve();
      }),
    );
    child.kill('SIGINT');
    expect([await ended, err]).toEqual([0, '']);
  }, 60_000);
});

describe('completion', () => {
  it('knows commands, options and the recorded sessions', async () => {
    const home = await recordedHome('session-of-mine', [said('prompt', { prompt: 'hello' })]);
    expect(nd7(home, ['complete', '--', 'ver']).stdout).toContain('verify\t');
    expect(nd7(home, ['complete', '--', 'verify', '--rec']).stdout).toContain('--receipts\t');
    for (const command of ['log', 'show', 'verify', 'ship', 'receipt', 'export'])
      expect(nd7(home, ['complete', '--', command, 'sess']).stdout).toContain('session-of-mine');
  }, 120_000);

  it('has a script for each shell, which the shell can read where it is installed', () => {
    const file = join(throwAwayFolder(), 'script');
    for (const shell of ['bash', 'zsh', 'fish']) {
      const script = nd7('/nonexistent/nd7', ['complete', shell]);
      expect([shell, script.status, script.stdout.includes('nd7 complete --')]).toEqual([shell, 0, true]);
      writeFileSync(file, script.stdout);
      const read = spawnSync(shell, ['-n', file], { encoding: 'utf8' });
      if (read.error === undefined) expect([shell, read.status, read.stderr]).toEqual([shell, 0, '']);
    }
  }, 60_000);
});
