// What of a command is believed, by units: its environment, which announced call it is, and frames of the broker's channel.
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { blake3Hex } from '@nd7/blake3';
import fc from 'fast-check';
import { commandEnvironment } from './command-environment.js';
import { Commands, type CommandsInput } from './commands.js';
import { findShell, stubOf } from './shell.js';
import { SpokenCommands } from './spoken-commands.js';

const block = (...variables: string[]): Buffer => Buffer.from(variables.map((one) => `${one}\0`).join(''));
const names = { stub: '/run/nd7/bash', shell: '/bin/bash' };
const given = (asked: Buffer, session: Record<string, string> = {}) => {
  const { environment, leftOut } = commandEnvironment(asked, session, names);
  return { environment: environment.map(String), leftOut };
};

describe('the environment of a command', () => {
  it('is what the one who asked has, the shell named as it is', () => {
    expect(given(block('A=1', 'SHELL=/run/nd7/bash', 'EMPTY=', 'A=2', 'B=x=y'))).toEqual({
      environment: ['A=1', 'SHELL=/bin/bash', 'EMPTY=', 'B=x=y'],
      leftOut: [],
    });
    expect(given(block('SHELL=/bin/zsh')).environment).toEqual(['SHELL=/bin/zsh']);
  });

  it('has of variables that load code those of the session', () => {
    const asked = block('LD_PRELOAD=/tmp/x.so', 'BASH_ENV=rc', 'BASH_FUNC_ls%%=() { evil; }', 'LD_LIBRARY_PATH=/lib');
    expect(given(asked, { LD_LIBRARY_PATH: '/lib', ENV: '/etc/env' })).toEqual({
      environment: ['LD_LIBRARY_PATH=/lib', 'ENV=/etc/env'],
      leftOut: ['LD_PRELOAD', 'BASH_ENV', 'BASH_FUNC_ls%%'],
    });
  });

  it('of any bytes gives whole variables only, each name once', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 300 }), (bytes) => {
        const { environment } = commandEnvironment(bytes, {}, names);
        const called = environment.map((one) => one.toString('latin1').split('=')[0]);
        return (
          new Set(called).size === called.length && environment.every((one) => one.indexOf('=') > 0 && !one.includes(0))
        );
      }),
    );
  });
});

const before = (call: string, command: string, more: object = {}): Buffer =>
  Buffer.from(
    JSON.stringify({
      hook_event_name: 'PreToolUse',
      tool_name: 'Bash',
      tool_use_id: call,
      session_id: 's',
      tool_input: { command },
      ...more,
    }),
  );
const after = (call: string): Buffer => before(call, '', { hook_event_name: 'PostToolUse' });
/** As Claude Code 2.1.332 was seen to do it. */
const evaluated = (command: string): string =>
  `source /x/snapshot.sh 2>/dev/null || true && eval '${command.replaceAll("'", `'"'"'`)}' < /dev/null && pwd -P >| /tmp/claude-1-cwd`;

describe('which announced command a text is', () => {
  it('is told by the text, also when others wait', () => {
    const spoken = new SpokenCommands();
    spoken.hear(before('t1', 'echo one'));
    spoken.hear(before('t2', ` echo 'a "b" $x' && cat <<'E'\nü\nE\n`));
    expect(spoken.match(evaluated(`echo 'a "b" $x' && cat <<'E'\nü\nE`))).toEqual({
      call: 't2',
      session: 's',
      by: 'text',
    });
    expect(spoken.match(evaluated('something else'))).toEqual({ call: 't1', session: 's', by: 'only' });
    expect(spoken.match(evaluated('echo one'))).toBeUndefined();
  });

  it('is not told by more than there is memory for', () => {
    setFlagsFromString('--expose-gc');
    const collect = runInNewContext('gc') as () => void;
    const held = (): number => {
      collect();
      const { heapUsed, external } = process.memoryUsage();
      return heapUsed + external;
    };
    const spoken = new SpokenCommands();
    const before_ = held();
    for (let i = 0; i < 60; i++) spoken.hear(before(`t${i}`, `${i} ${'x'.repeat(3 << 20)}`));
    spoken.hear(before('y'.repeat(3 << 20), 'echo'));
    expect(held() - before_).toBeLessThan(60 << 20);
    expect(spoken.match(`7 ${'x'.repeat(3 << 20)}`)?.call).toBe('t7');
  });

  it('of two alike is the older, and of several that wait none by being the only one', () => {
    const spoken = new SpokenCommands();
    for (const call of ['a', 'b', 'c']) spoken.hear(before(call, call === 'c' ? 'other' : 'same'));
    expect([1, 2].map(() => spoken.match(evaluated('same'))?.call)).toEqual(['a', 'b']);
    spoken.hear(before('d', 'more'));
    expect(spoken.match(evaluated('unknown'))).toBeUndefined();
  });

  it('any command is found again in what the client makes of it', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', minLength: 1, maxLength: 60 }), (command) => {
        const spoken = new SpokenCommands();
        spoken.hear(before('other', 'no such thing at all'));
        spoken.hear(before('it', `x${command}`));
        expect(spoken.match(evaluated(`x${command}`))?.call).toBe('it');
      }),
    );
  });

  it('a call that ended without one is told, a failed or a foreign one is not', () => {
    const spoken = new SpokenCommands();
    expect(spoken.hear(before('t1', 'echo'))).toBe('announced');
    expect(spoken.hear(after('t1'))).toEqual({ unseen: 't1' });
    expect(spoken.hear(after('t1'))).toBeUndefined();
    spoken.hear(before('t2', 'echo'));
    expect(spoken.hear(before('t2', '', { hook_event_name: 'PostToolUseFailure' }))).toBeUndefined();
    for (const bad of [
      '',
      'ToolUse Bash',
      '"ToolUse Bash"',
      'null ToolUse Bash',
      '{"tool_name":"Bash","hook_event_name":"PreToolUse","tool_use_id":1}',
    ])
      expect(spoken.hear(Buffer.from(bad))).toBeUndefined();
  });
});

describe('who decides about commands', () => {
  const noted: [string, Record<string, unknown>, string][] = [];
  const commands = (
    note: CommandsInput['record']['note'] = (
      kind: string,
      data: Record<string, unknown>,
      _what: string,
      source = '',
    ): Promise<void> => {
      noted.push([kind, data, source]);
      return Promise.resolve();
    },
    takesUnannounced = true,
  ): Commands =>
    new Commands({
      takesUnannounced,
      record: { note },
      ...names,
      environment: {},
      warn: () => undefined,
      readsMore: () => false,
      unrecorded: () => noted.push(['unrecorded', {}, '']),
    });
  const asked = {
    id: 1,
    pid: process.pid,
    uid: 0,
    login: false,
    terminal: false,
    streams: [true, true, true] as [boolean, boolean, boolean],
    text: Buffer.from('true'),
  };
  beforeEach(() => noted.splice(0));

  it('has all that it tells on the disk within a moment, also where the session says nothing else', async () => {
    const how: unknown[] = [];
    const one = commands((...[, , , , , options]: Parameters<CommandsInput['record']['note']>) => {
      how.push(options?.sync);
      return Promise.resolve();
    });
    one.admit(process.ppid);
    await one.asked(asked);
    one.refused(1, 0, 'no request');
    expect(how).toEqual(['soon', 'soon']);
  });

  it('refuses whom it does not know: nobody before the session has begun, nobody outside of it', async () => {
    const one = commands();
    expect(await one.asked(asked)).toMatchObject({ verdict: 'refuse' });
    one.admit(process.pid);
    // The first process itself is the launcher.
    expect(await one.asked(asked)).toMatchObject({ verdict: 'refuse' });
    expect(noted.map(([kind]) => kind)).toEqual(['alarm', 'alarm']);
  });

  it('runs what a process of the session asks for, as it is there, and records it first', async () => {
    const one = commands();
    one.admit(process.ppid);
    const answer = await one.asked(asked);
    expect(answer).toMatchObject({
      verdict: 'run',
      order: { program: '/bin/bash', argv: ['/bin/bash', '-c', asked.text], umask: process.umask() },
    });
    expect(noted).toMatchObject([
      ['exec', { command: 'c-1', text: { blake3: blake3Hex(asked.text), bytes: 4 } }, 'effect:exec-broker'],
    ]);
    one.hears(before('t', 'x'));
    one.began(1, 10, 11);
    one.ended(1, {
      code: 0,
      signal: null,
      isLost: false,
      userUs: 1,
      systemUs: 2,
      maxRssKiB: 3,
      minorFaults: 4,
      majorFaults: 5,
      blocksIn: 6,
      blocksOut: 7,
    });
    expect(noted.slice(1)).toMatchObject([
      ['exec.end', { command: 'c-1', pid: 11, tree: 10, code: 0 }, 'effect:exec-broker'],
    ]);
  });

  it('names the call that announced it', async () => {
    const one = commands();
    one.admit(process.ppid);
    one.hears(before('toolu_1', 'make'));
    await one.asked({ ...asked, text: Buffer.from(evaluated('make')) });
    expect(noted[0]?.[1]).toMatchObject({ tool_use_id: 'toolu_1', session: 's', tied: 'text' });
  });

  it('runs only what was announced, word for word, for an agent that gives its shell other things too', async () => {
    const one = commands(undefined, false);
    one.admit(process.ppid);
    one.hears(before('call_1', 'make'));
    const other = { ...asked, text: Buffer.from("eval 1; exec bash -c 'make'") };
    expect(await one.asked(other)).toEqual({ verdict: 'direct' });
    expect(noted).toEqual([]);
    expect(await one.asked({ ...asked, text: Buffer.from('make') })).toMatchObject({ verdict: 'run' });
    expect(noted[0]?.[1]).toMatchObject({ tool_use_id: 'call_1', tied: 'text' });
    expect(await one.asked({ ...asked, text: Buffer.from('make') })).toEqual({ verdict: 'direct' });
  });

  it('runs nothing that it cannot record where that is required', async () => {
    const one = commands(() => Promise.reject(new Error('disk')));
    one.admit(process.ppid);
    expect(await one.asked(asked)).toMatchObject({ verdict: 'refuse' });
    expect(noted).toEqual([['unrecorded', {}, '']]);
  });

  it('says once that nobody runs commands any more, when the next one comes', async () => {
    const one = commands();
    one.admit(process.ppid);
    one.lost('zygote');
    one.lost('broker');
    expect(noted).toEqual([]);
    expect(await one.asked(asked)).toEqual({ verdict: 'direct' });
    one.hears(before('t', 'x'));
    one.hears(after('t'));
    expect(noted).toMatchObject([['alarm', { reason: 'no broker', detail: 'the zygote has ended' }, 'recorder:nd7']]);
  });
});

it('the shell is the one that the client would take', () => {
  expect(findShell({ SHELL: '/bin/bash', PATH: '' })).toBe('/bin/bash');
  expect(findShell({ CLAUDE_CODE_SHELL: '/nowhere/zsh', SHELL: '/bin/bash' })).toBe('/bin/bash');
  expect(findShell({ SHELL: '/bin/sh' })).toMatch(/\/(zsh|bash)$/);
  expect([stubOf('/opt/zsh-5/bin/zsh'), stubOf('/bin/bash')]).toEqual(['/run/nd7/zsh', '/run/nd7/bash']);
});
