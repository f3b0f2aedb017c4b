import { spawnSync } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { mkdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { dirname, join } from 'node:path';
import { answer, blocksSignals, builds, built, compiled, end, folder, release, Rig, tool, until } from './rig.js';

/** An agent's environment: keys, and settings that would change what a Node process does. */
const AGENTS = {
  NODE_OPTIONS: '--no-such-option',
  NODE_TLS_REJECT_UNAUTHORIZED: '0',
  AWS_SECRET_ACCESS_KEY: 'x',
  HOME: '/h',
  CLAUDE_PID: '7',
};

/** A main file whose recorder never comes up, and whose hook keeps what it got. */
const KEEPING_HOOK = `
if (role === 'recorder') process.exit(1);
const got = fs.readFileSync(0);
fs.writeFileSync(home + '/hooked', got);
fs.writeFileSync(home + '/hooked.json', JSON.stringify({ argv: process.argv.slice(2), why: process.env.ND7_SHIM, env: Object.keys(process.env).sort() }));
process.stdout.write('from node');
process.exitCode = 2;`;

it('is built, in release and with sanitizers, where there is a C compiler', () => {
  expect(built.stderr).toBe('');
  if (process.platform === 'linux' && spawnSync('cc', ['--version']).status === 0)
    expect(builds.map(([name]) => name)).toEqual(['release', 'sanitized']);
});

(compiled ? describe : describe.skip).each(builds)('the shim, %s build', (_name, shim) => {
  let rig: Rig;
  beforeEach(() => {
    rig = new Rig(shim);
  });
  afterEach(() => rig.close());

  describe('with a recorder', () => {
    it('hands over the payload and who it is from, and relays the answer', async () => {
      await rig.listen(() => answer(7, '{"a":1}', 'said\n'));
      const ended = await rig.run(`${tool()}\n`, {
        env: {
          CLAUDE_CODE_SESSION_ID: 'x y',
          CLAUDE_PROJECT_DIR: '/p/ü',
          CLAUDE_CONFIG_DIR: '/c',
          CLAUDE_PID: '12',
          OTHER: 'z',
        },
      });
      expect(ended).toEqual({ code: 7, signal: null, stdout: '{"a":1}', stderr: 'said\n' });
      const [request] = rig.received;
      expect(request?.payload.toString()).toBe(tool());
      expect(request?.meta).toEqual({
        op: 'hook',
        agent: 'claude-code',
        took: 'complete',
        cwd: rig.home,
        pid: expect.stringMatching(/^\d+$/) as string,
        ppid: String(process.pid),
        'env.CLAUDE_CODE_SESSION_ID': 'x y',
        'env.CLAUDE_PROJECT_DIR': '/p/ü',
        'env.CLAUDE_CONFIG_DIR': '/c',
        'env.CLAUDE_PID': '12',
      });
    });

    it('does not wait for the end of stdin', async () => {
      await rig.listen(() => answer(0));
      const child = rig.start();
      const ended = end(child);
      child.stdin?.write(tool()); // and never ended
      expect((await ended).code).toBe(0);
      expect(rig.received[0]?.meta['took']).toBe('complete');
    });

    it('puts together what comes in pieces, cut anywhere', async () => {
      await rig.listen(() => answer(0));
      const text = Buffer.from(` \n{"a":"\\"}]","b":["\\\\",{"ü€😀":"\\u007d"}],"hook_event_name":"Stop"}`);
      const child = rig.start();
      const ended = end(child);
      for (let i = 0; i < text.length; i += 3) {
        child.stdin?.write(text.subarray(i, i + 3));
        await new Promise((resolve) => setTimeout(resolve, 1));
      }
      expect((await ended).code).toBe(0);
      expect(rig.received[0]?.payload).toEqual(text);
    });

    it.each([
      ['a text', '"a\\"b"', 'complete'],
      ['a number and a line end', '12\n', 'complete'],
      ['a number', '12', 'eof'],
      ['nothing', '', 'eof'],
      ['white space', ' \n', 'eof'],
      ['half an object', '{"a":[1,', 'eof'],
      ['no JSON', '}{ hello', 'complete'],
      ['NUL', '{"a":\0}\0\0', 'complete'],
    ])('takes %s as it comes', async (_what, text, took) => {
      await rig.listen(() => answer(0));
      expect((await rig.run(text)).code).toBe(0);
      expect(rig.received[0]?.meta['took']).toBe(took);
      expect(rig.received[0]?.payload.toString()).toBe(text.replace(/[ \n]+$/, ''));
    });

    it('gives up on a stdin that falls silent, and hands over what came', async () => {
      rig.conf({ 'idle-ms': 150 });
      await rig.listen(() => answer(0));
      const child = rig.start();
      const ended = end(child);
      child.stdin?.write('{"hook_event_name":"Pre');
      expect((await ended).code).toBe(0);
      expect(rig.received[0]?.meta['took']).toBe('idle');
      expect(rig.received[0]?.payload.toString()).toBe('{"hook_event_name":"Pre');
    });

    it('carries megabytes', async () => {
      await rig.listen((r) => answer(0, createHash('sha256').update(r.payload).digest('hex')));
      const payload = tool({ image: randomBytes(9 << 20).toString('base64') });
      expect((await rig.run(payload)).stdout).toBe(createHash('sha256').update(payload).digest('hex'));
    });

    it('stops at 64 MiB and says so', async () => {
      let length = 0;
      let took = '';
      await rig.listen((r) => {
        [length, took] = [r.payload.length, r.meta['took'] ?? ''];
        return answer(0);
      });
      const child = rig.start();
      const ended = end(child);
      child.stdin?.write('"');
      child.stdin?.write(Buffer.alloc(70 << 20, 'a'));
      expect((await ended).code).toBe(0);
      expect([length, took]).toEqual([64 << 20, 'limit']);
    });

    it('relays an answer of megabytes that comes in pieces', async () => {
      const long = 'é'.repeat(1 << 20);
      await rig.listen((_r, socket) => {
        const bytes = answer(0, long, long.slice(0, 1000));
        for (let i = 0; i < bytes.length; i += 100_003) socket.write(bytes.subarray(i, i + 100_003));
        return undefined;
      });
      const ended = await rig.run(tool());
      expect(ended.stdout).toBe(long);
      expect(ended.stderr).toBe(long.slice(0, 1000));
    });

    it.each(['SIGTERM', 'SIGINT', 'SIGHUP'] as const)(
      'does not let %s come between payload and entry',
      async (signal) => {
        let ask: (() => void) | undefined;
        await rig.listen((_r, socket) => {
          ask = () => socket.end(answer(0, 'recorded'));
          return undefined;
        });
        const child = rig.start();
        const ended = end(child);
        child.stdin?.write('{"a":');
        await until(() => blocksSignals(child.pid));
        child.kill(signal);
        child.stdin?.write('1}');
        await until(() => ask !== undefined);
        child.kill(signal);
        ask?.();
        expect(await ended).toEqual({ code: 0, signal: null, stdout: 'recorded', stderr: '' });
      },
    );

    it('works from a folder that is gone, and under a path longer than a socket address', async () => {
      await rig.close();
      rig = new Rig(shim, `${'long'.repeat(30)}/ö x/home`);
      // Node would cut the path; the test listens elsewhere and moves the socket.
      await rig.listen(() => answer(0, 'yes'), join(dirname(dirname(dirname(rig.home))), 's'));
      spawnSync('mv', [join(dirname(dirname(dirname(rig.home))), 's'), rig.path('run/hook')]);
      const gone = rig.path('gone');
      mkdirSync(gone);
      const child = rig.start({ cwd: gone });
      const ended = end(child);
      rmSync(gone, { recursive: true });
      child.stdin?.end(tool());
      expect((await ended).stdout).toBe('yes');
      expect(rig.received[0]?.meta['cwd'] ?? 'none').toMatch(/none|gone/);
    });
  });

  describe('without a recorder', () => {
    it('starts one, once, however many hooks come at the same time', async () => {
      rig.main(
        `
        if (role === 'hook') process.exit(0);
        fs.appendFileSync(home + '/starts', 'x');
        fs.writeFileSync(home + '/recorder.pid', String(process.pid));
        fs.writeFileSync(home + '/recorder.json', JSON.stringify({ env: Object.keys(process.env).sort(), cwd: process.cwd(), argv: process.argv.slice(2), flags: process.execArgv }));
        console.log('up');
        net.createServer((s) => s.once('data', () => s.end(Buffer.from('6e6437010300000002000000686900000000', 'hex')))).listen(home + '/run/hook');`,
        { 'start-ms': 60_000 },
      );
      const all = await Promise.all(Array.from({ length: 8 }, () => rig.run(tool(), { env: AGENTS })));
      expect(all).toEqual(all.map(() => ({ code: 3, signal: null, stdout: 'hi', stderr: '' })));
      expect(rig.read('starts')).toBe('x');
      expect(JSON.parse(rig.read('recorder.json'))).toEqual({
        env: ['HOME', 'MALLOC_ARENA_MAX', 'ND7_HOME'],
        cwd: '/',
        argv: ['recorder'],
        flags: expect.arrayContaining(['--optimize-for-size']) as string[],
      });
      expect(rig.read('run/recorder.log')).toBe('up\n');
      // It is nobody's child and in a session of its own: the end of the agent does not end it.
      const stat = spawnSync('ps', ['-o', 'sid=,pid=', '-p', rig.read('recorder.pid')], { encoding: 'utf8' })
        .stdout.trim()
        .split(/\s+/);
      expect(stat[0]).not.toBe(String(process.pid));
    });

    it('starts one where a dead one left its socket', async () => {
      const server = createServer();
      await new Promise<void>((resolve) => server.listen(rig.path('run/left'), resolve));
      spawnSync('ln', [rig.path('run/left'), rig.path('run/hook')]);
      await new Promise((resolve) => server.close(resolve));
      expect(statSync(rig.path('run/hook')).isSocket()).toBe(true);
      rig.main(
        `
        if (role === 'hook') process.exit(0);
        fs.writeFileSync(home + '/recorder.pid', String(process.pid));
        fs.unlinkSync(home + '/run/hook');
        net.createServer((s) => s.once('data', () => s.end(Buffer.from('6e6437010300000002000000686900000000', 'hex')))).listen(home + '/run/hook');`,
        { 'start-ms': 60_000 },
      );
      expect((await rig.run(tool())).stdout).toBe('hi');
    });

    it('runs the Node hook in its place, with the payload it has read', async () => {
      rig.main(KEEPING_HOOK, { 'start-ms': 300 });
      const ended = await rig.run(tool(), { env: AGENTS });
      expect(ended).toEqual({ code: 2, signal: null, stdout: 'from node', stderr: '' });
      expect(rig.read('hooked')).toBe(tool());
      expect(JSON.parse(rig.read('hooked.json'))).toEqual({
        argv: ['hook', '--agent', 'claude-code', '--took', 'complete'],
        why: 'no-recorder',
        env: ['CLAUDE_PID', 'HOME', 'ND7_HOME', 'ND7_SHIM'],
      });
      expect(rig.read('run/missed')).toBe('');
    });

    it('knows at once when there is no Node to start', async () => {
      rig.conf({ node: '/nowhere/node', main: '/nowhere/main.js', 'start-ms': 600_000 });
      expect((await rig.run(tool())).code).toBe(0);
      expect(rig.read('run/missed')).toMatch(
        /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z\tclaude-code\ts-1\tPreToolUse\tno recorder could be reached or started\n$/,
      );
    });
  });

  describe('with a recorder that fails', () => {
    const failures: [string, (socket: import('node:net').Socket) => Buffer | undefined][] = [
      ['dies before it answers', (s) => (s.destroy(), undefined)],
      ['dies in mid-answer', () => answer(0, 'the beginning of an answer').subarray(0, 20)],
      ['hangs', () => undefined],
      ['hangs in mid-answer', (s) => (s.write(answer(0, 'abc').subarray(0, 9)), undefined)],
      ['answers in another version', () => Buffer.from('nd7\x02' + '\0'.repeat(12))],
      ['answers with nonsense', () => Buffer.from('HTTP/1.1 200 OK\r\n\r\n')],
      ['answers with an exit code that is none', () => answer(300)],
      ['promises more than it may say', () => Buffer.from('nd7\x01\0\0\0\0\xff\xff\xff\x7f', 'latin1')],
    ];
    it.each(failures)(
      'that %s: the Node hook takes over and nothing of its answer is printed',
      async (_what, reply) => {
        rig.main(KEEPING_HOOK, { 'answer-ms': 200 });
        await rig.listen((_r, socket) => reply(socket));
        expect(await rig.run(tool())).toEqual({ code: 2, signal: null, stdout: 'from node', stderr: '' });
        expect(rig.read('hooked')).toBe(tool());
        expect(JSON.parse(rig.read('hooked.json'))).toMatchObject({ why: 'no-answer' });
      },
    );

    it('by answering random bytes: never a crash, never half an answer', async () => {
      rig.main('process.exit(0)', { 'answer-ms': 500 });
      await rig.listen(() => {
        const bytes = randomBytes(1 + Math.floor(Math.random() * 64));
        if (Math.random() < 0.8) bytes.write('nd7\x01', 'latin1');
        if (Math.random() < 0.8) bytes.fill(0, Math.min(5, bytes.length), Math.min(12, bytes.length));
        return bytes;
      });
      for (let i = 0; i < 15; i++) {
        const { code, signal } = await rig.run('{}');
        expect(signal).toBeNull();
        expect(code).not.toBe(99); // what the sanitizers end with
      }
    });
  });

  describe('when nothing can record', () => {
    const failing: [string, string, Record<string, number>][] = [
      ['crashes', "throw new Error('broken')", {}],
      ['ends otherwise than a hook does', 'process.exit(3)', {}],
      ['hangs', 'setInterval(() => {}, 1000)', { 'node-ms': 500 }],
    ];
    const missed = (rig: Rig): string[][] =>
      rig
        .read('run/missed')
        .trimEnd()
        .split('\n')
        .map((line) => line.split('\t').slice(1));

    it.each(failing)(
      'because the Node hook %s: best effort lets the agent work and leaves a note',
      async (_what, body, more) => {
        rig.main(`if (role === 'recorder') process.exit(1); ${body}`, { 'start-ms': 1, ...more });
        const ended = await rig.run(tool());
        expect([ended.code, ended.stdout]).toEqual([0, '']);
        expect(missed(rig)).toEqual([['claude-code', 's-1', 'PreToolUse', 'no recorder could be reached or started']]);
      },
    );

    it('required recording denies the call and says why', async () => {
      rig.conf({ recording: 'required' });
      const ended = await rig.run(tool());
      expect(ended.code).toBe(2);
      expect(ended.stderr).toContain('recording is required');
      expect(JSON.parse(ended.stdout)).toEqual({
        hookSpecificOutput: {
          hookEventName: 'PreToolUse',
          permissionDecision: 'deny',
          permissionDecisionReason: expect.stringContaining('recording is required') as string,
        },
      });
      expect(missed(rig)).toHaveLength(1);
    });

    it.each([
      ['PostToolUse', 0],
      ['SessionEnd', 0],
      ['PreSkillShellCommand', 2],
      ['beforeShellExecution', 2],
    ])('required recording and %s: exit %i', async (event, code) => {
      rig.conf({ recording: 'required' });
      expect((await rig.run(tool({ hook_event_name: event }))).code).toBe(code);
    });

    it.each([
      ['broken off', '{"hook_event_name":"PostT'],
      ['without an event', '{"session_id":"s-1"}'],
      [
        'whose event stands deeper only',
        '{"a":{"hook_event_name":"PostToolUse"},"b":["hook_event_name","PostToolUse"]}',
      ],
      ['whose event is spelled with escapes', '{"hook_event_name":"Post\\u0054oolUse"}'],
      ['that is no object', '12'],
    ])('required recording and a payload %s: it may be a call, so it is denied', async (_what, payload) => {
      rig.conf({ recording: 'required' });
      const ended = await rig.run(payload);
      expect([ended.code, ended.stdout]).toEqual([2, '']);
    });

    it('writes one line per payload, whatever the payload says', async () => {
      rig.conf({ recording: 'best-effort' });
      await Promise.all(
        Array.from({ length: 12 }, (_, i) => rig.run(`{"session_id":"a\tb\n${i}","hook_event_name":"Pre\x01"}`)),
      );
      const lines = missed(rig);
      expect(lines).toHaveLength(12);
      for (const line of lines)
        expect(line).toEqual([
          'claude-code',
          expect.stringMatching(/^a\?b\?\d+$/) as string,
          'Pre?',
          expect.any(String) as string,
        ]);
      expect(statSync(rig.path('run/missed')).mode & 0o777).toBe(0o600);
    });
  });
});

(builds.length > 1 ? it : it.skip)('its parsers withstand random bytes (sanitized build)', () => {
  for (const seed of [1, 2, 3, Math.floor(Math.random() * 1e9)]) {
    const run = spawnSync(join(folder, 'build/fuzz'), [String(seed), '20000'], {
      encoding: 'utf8',
      env: { ASAN_OPTIONS: 'detect_leaks=0' },
    });
    expect({ seed, stderr: run.stderr, stdout: run.stdout }).toEqual({ seed, stderr: '', stdout: '20000 rounds\n' });
  }
});

it('says what is missing where there is no compiler, and ends well', () => {
  const empty = new Rig(release);
  mkdirSync(empty.path('bin'));
  writeFileSync(empty.path('run/x'), '');
  const run = spawnSync(process.execPath, [join(folder, 'build.mjs')], {
    encoding: 'utf8',
    env: { PATH: empty.path('bin') },
  });
  expect([run.status, run.stdout]).toEqual([0, expect.stringContaining('no C compiler') as string]);
  return empty.close();
});
