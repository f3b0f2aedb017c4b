// `nd7 run` as a person types it: what comes back, what is refused, what is recorded, and what the terminal sees.
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readdirSync, readFileSync, truncateSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { BY_FRONT, typed } from '../testing/front.fixture.js';
import { removeThrowAways, throwAway } from '../testing/recorder.fixture.js';

const [PROGRAM, MAIN] = typed();

let user: string;
let project: string;
beforeEach(() => {
  user = join(throwAway(), 'a user ünï');
  project = join(user, 'project');
  mkdirSync(join(user, '.ssh'), { recursive: true });
  mkdirSync(project);
  writeFileSync(join(user, '.ssh/id'), 'SECRET');
  // A home where a host can be: the first start of all is the CLI's.
  if (BY_FRONT) mkdirSync(join(user, '.nd7/run'), { recursive: true, mode: 0o700 });
});
afterEach(removeThrowAways);

const environment = (more: Record<string, string> = {}): Record<string, string> => ({
  PATH: '/usr/local/bin:/usr/bin:/bin',
  HOME: user,
  TERM: 'xterm',
  // A shell writes its history when it ends, which may be after its home has gone.
  HISTFILE: '/dev/null',
  ...more,
});

function nd7(args: string[], options: { env?: Record<string, string>; cwd?: string; input?: string } = {}) {
  const { status, signal, stdout, stderr } = spawnSync(PROGRAM, [MAIN, ...args], {
    cwd: options.cwd ?? project,
    encoding: 'utf8',
    env: environment(options.env),
    input: options.input ?? '',
  });
  return { status, signal, stdout, stderr };
}

describe('nd7 run', () => {
  // Of a session's host nothing is seen but that it is there, where there was a session.
  afterEach(() => {
    if (existsSync(join(user, '.nd7/sessions'))) expect(existsSync(join(user, '.nd7/run/host.lock'))).toBe(BY_FRONT);
  });

  it('gives the program its streams, its arguments and its exit code, and prints nothing of its own', () => {
    const script = 'cat; echo "$1" >&2; echo x > made; cat ~/.ssh/id 2>/dev/null; exit 7';
    expect(nd7(['run', '--', 'sh', '-c', script, 'sh', "a 'b' --json"], { input: 'from stdin\n' })).toEqual({
      status: 7,
      signal: null,
      stdout: 'from stdin\n',
      stderr: "a 'b' --json\n",
    });
    expect(readFileSync(join(project, 'made'), 'utf8')).toBe('x\n');
  });

  it('says where an agent will not find the login that its person has', () => {
    mkdirSync(join(user, '.claude'));
    writeFileSync(join(user, '.claude/.credentials.json'), '{}');
    const agent = ['run', '--agent', 'claude-code', '--', 'sh', '-c', 'cat ~/.claude/.credentials.json'];
    expect(nd7(agent).stderr).toMatch(/^nd7: the login in .*\.credentials\.json is hidden inside.*"claude-code-login"/);
    expect(nd7(agent, { env: { ANTHROPIC_API_KEY: 'x' } }).stderr).not.toContain('is hidden inside');
    mkdirSync(join(user, '.nd7'), { recursive: true, mode: 0o700 });
    const policy = { nd7: 1, packs: { 'claude-code-login': true } };
    writeFileSync(join(user, '.nd7/policy.jsonc'), JSON.stringify(policy), { mode: 0o600 });
    expect(nd7(agent).stderr).not.toContain('is hidden inside');
  });

  it('leaves the program streams that block: who writes late is waited for, and who reads late', () => {
    const script = `(sleep 1; echo late) | "$0" "$1" run -v -- sh -c 'cat; head -c 1000000 /dev/zero >&2' 2>&1 | (sleep 1; wc -c)`;
    const { stdout } = spawnSync('sh', ['-c', script, PROGRAM, MAIN], {
      cwd: project,
      encoding: 'utf8',
      env: environment(),
    });
    expect(Number(stdout)).toBeGreaterThan(1_000_000 + 'late'.length);
    expect(stdout).not.toContain('Resource temporarily unavailable');
  });

  it('does without a property that the rules require only where that is said of one that they do', () => {
    expect(nd7(['run', '--without', 'files.leaves', '--', 'echo', 'ran'])).toMatchObject({
      status: 0,
      stdout: 'ran\n',
    });
    expect(nd7(['run', '--without', 'no.such', '--', 'echo', 'ran'])).toMatchObject({
      status: 2,
      stdout: '',
      stderr: expect.stringMatching(/do not require "no\.such"[^]*files\.leaves/) as string,
    });
  });

  it('ends as the program ends', () => {
    expect(nd7(['run', '--', 'sh', '-c', 'kill -TERM $$'])).toMatchObject({ status: null, signal: 'SIGTERM' });
    expect(nd7(['run', '--', 'sh', '-c', 'kill -SEGV $$'])).toMatchObject({ status: 128 + 11, signal: null });
    expect(nd7(['run', '--', 'no-such-program'])).toMatchObject({
      status: 127,
      stderr: 'nd7: no-such-program: No such file or directory\n',
    });
  });

  it('hides what is hidden also where its file system is mounted a second time', () => {
    writeFileSync(join(user, 'open'), 'OPEN');
    // In a mount namespace of its own, at a place outside the temporary folder, of which a session has its own.
    const mounted = 'mount --bind "$1" /mnt && exec "$2" "$3" run -- sh -c "$4"';
    const script = 'cat ~/.ssh/id /mnt/.ssh/id; cat /mnt/open';
    const flags = process.geteuid?.() === 0 ? '-m' : '-Urm';
    const ran = spawnSync('unshare', [flags, 'sh', '-c', mounted, 'sh', user, PROGRAM, MAIN, script], {
      cwd: project,
      encoding: 'utf8',
      env: environment(),
    });
    expect([ran.stdout, ran.stderr.match(/\.ssh\/id'?: (No such file|Permission denied)/g)?.length]).toEqual([
      'OPEN',
      2,
    ]);
  });

  it('says why a program is not found inside that is there outside', () => {
    const tool = join(throwAway(), 'tool');
    writeFileSync(tool, '#!/bin/sh\n', { mode: 0o755 });
    const own = tool.startsWith('/tmp/') ? '/tmp' : '/var/tmp';
    if (/^\/(var\/)?tmp\//.test(tool))
      expect(nd7(['run', '--', tool])).toMatchObject({
        status: 127,
        stderr: expect.stringContaining(`nd7: ${tool} is there, but the session has ${own} to itself`) as string,
      });
    expect(nd7(['run', '--', '/no/such/tool']).stderr).toBe('nd7: /no/such/tool: No such file or directory\n');
  });

  it('keeps secrets of the environment out', () => {
    const env = { AWS_SECRET_ACCESS_KEY: 'SECRET', GITHUB_TOKEN: 'SECRET', SSH_AUTH_SOCK: '/tmp/agent', EDITOR: 'vi' };
    const { stdout } = nd7(['run', '--', 'env'], { env });
    expect(stdout).toContain('EDITOR=vi\n');
    expect(stdout).not.toMatch(/SECRET|SSH_AUTH_SOCK/);
  });

  it('records the boundary before the program’s end in a chain of its own, which verifies', () => {
    nd7(['run', '--', 'sh', '-c', 'exit 3']);
    const [session = ''] = readdirSync(join(user, '.nd7/sessions')).filter((name) => name.startsWith('run-'));
    const folder = join(user, '.nd7/sessions', session);
    const entries = readFileSync(join(folder, 'log.jsonl'), 'utf8')
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as { source: string; kind: string; data: string });
    expect(entries.map(({ source, kind }) => `${source} ${kind}`)).toEqual([
      'recorder:nd7 session.start',
      'recorder:nd7 enforcement',
      'recorder:nd7 session.end',
      'recorder:nd7 seal',
    ]);
    expect(JSON.parse(JSON.stringify(entries[1]?.data))).toMatchObject({
      tier: 'T1',
      project,
      properties: {
        'files.read': { status: 'full', shown: ['read-hidden'] },
        'files.leaves': { status: 'full', shown: ['late-name'] },
      },
    });
    expect(entries[2]?.data).toMatchObject({ reason: 'program ended', code: 3 });
    expect(nd7(['verify', session])).toMatchObject({ status: 0 });
    expect(readdirSync(join(user, '.nd7')).filter((name) => name.startsWith('.canary'))).toEqual([]);
  });

  it('records what was refused, once and how often, and the log says it', () => {
    const refused = nd7([
      'run',
      '--',
      'sh',
      '-c',
      'mkdir .claude; mkdir .claude; git init -q . && git config alias.x y',
    ]);
    expect(refused.status).not.toBe(0);
    const [session = ''] = readdirSync(join(user, '.nd7/sessions')).filter((name) => name.startsWith('run-'));
    const lines = nd7(['log', session])
      .stdout.split('\n')
      .filter((line) => line.includes('decision'));
    expect(lines.map((line) => line.replace(/.*decision +/, '').replace(/ +/, ' '))).toEqual([
      `file deny mkdir ${project}/.claude, by protect.refuse: .claude`,
      expect.stringMatching(/^file allow rename .*\/\.git\/config, by protect\.mediate\.name: git:config$/),
      expect.stringMatching(/^file deny rename .*\/\.git\/config, alias\.x, by protect\.mediate\.name: git:config$/),
      expect.stringMatching(/^file\.summary .*deny 2 times by protect\.refuse: \.claude/),
    ]);
    expect(nd7(['verify', session])).toMatchObject({ status: 0 });
  });

  it.each([
    ['goes on and keeps the exit code where the policy lets it, saying so once', 'best-effort', 7],
    ['says so in place of the exit code where the policy requires it', 'required', 1],
  ])('whose record fails in mid-session %s', async (_what, recording, status) => {
    mkdirSync(join(user, '.nd7'), { recursive: true, mode: 0o700 });
    writeFileSync(join(user, '.nd7/policy.jsonc'), JSON.stringify({ nd7: 1, recording }), { mode: 0o600 });
    const script = 'echo up; while [ ! -e go ]; do sleep 0.02; done; exit 7';
    const child = spawn(PROGRAM, [MAIN, 'run', '--', 'sh', '-c', script], { cwd: project, env: environment() });
    let said = '';
    child.stderr.on('data', (bytes: Buffer) => (said += bytes.toString()));
    await once(child.stdout, 'data');
    const [session = ''] = readdirSync(join(user, '.nd7/sessions'));
    const log = join(user, '.nd7/sessions', session, 'log.jsonl');
    // What holds is on the disk before the program has said a word.
    expect(readFileSync(log, 'utf8')).toContain('"kind":"enforcement"');
    // A log that somebody has cut is not written to any more.
    truncateSync(log);
    writeFileSync(join(project, 'go'), '');
    expect(await once(child, 'close')).toEqual([status, null]);
    expect(said).toMatch(/^nd7: the program’s end \(7\) (is not|cannot be) recorded.*\n(     .*\n)?$/);
  });

  it('prints the manifest on stderr when asked', () => {
    const { stdout, stderr } = nd7(['run', '--json', '--', 'echo', 'out']);
    expect(stdout).toBe('out\n');
    const manifest = JSON.parse(stderr) as { tier: string; properties: { property: string; status: string }[] };
    expect(manifest.tier).toBe('T1');
    expect(manifest.properties.find(({ property }) => property === 'privilege.none')).toMatchObject({ status: 'full' });
    expect(nd7(['run', '--verbose', '--', 'true']).stderr).toMatch(/full {4}files\.write .*\(shown: write-outside\)/);
  });

  it('lets out through the proxy what a rule names, nothing else, and records each answer', async () => {
    const server = createServer((_request, response) => response.end('OUTSIDE')).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as { port: number };
    mkdirSync(join(user, '.nd7'), { recursive: true, mode: 0o700 });
    const policy = JSON.stringify({ nd7: 1, network: { loopback: [String(port)] } });
    writeFileSync(join(user, '.nd7/policy.jsonc'), policy, { mode: 0o600 });
    const ask = `
      const http = require('http');
      const { hostname, port } = new URL(process.env.HTTP_PROXY);
      const ask = (method, path) => new Promise((done) => {
        const request = http.request({ hostname, port, method, path, headers: { host: method === 'CONNECT' ? path : new URL(path).host } });
        request.on('connect', (answer) => done(answer.statusCode));
        request.on('response', (answer) => { let text = ''; answer.on('data', (part) => (text += part)).on('end', () => done(answer.statusCode + ':' + text.slice(0, 7))); });
        request.end();
      });
      (async () => console.log([await ask('GET', 'http://127.0.0.1:${port}/'), await ask('GET', 'http://127.0.0.1:1/'), await ask('CONNECT', 'host.invalid:443')].join(' ')))();`;
    writeFileSync(join(project, 'ask.cjs'), ask);
    const child = spawn(PROGRAM, [MAIN, 'run', '-v', '--', process.execPath, 'ask.cjs'], {
      cwd: project,
      env: environment(),
    });
    let [said, told] = ['', ''];
    child.stdout.on('data', (bytes: Buffer) => (said += bytes.toString()));
    child.stderr.on('data', (bytes: Buffer) => (told += bytes.toString()));
    const [code] = (await once(child, 'close')) as [number];
    server.close();
    expect(told.split('\n').filter((line) => line.startsWith('nd7: refused'))).toEqual([
      'nd7: refused 1 time: 127.0.0.1:1, by the proxy (loopback) (nd7 why 127.0.0.1:1)',
      'nd7: refused 1 time: host.invalid:443, by the proxy (no-rule) (nd7 why host.invalid:443)',
    ]);
    expect([code, said]).toEqual([0, '200:OUTSIDE 403:nd7: po 403\n']);
    const [session = ''] = readdirSync(join(user, '.nd7/sessions'));
    const decisions = readFileSync(join(user, '.nd7/sessions', session, 'log.jsonl'), 'utf8')
      .split('\n')
      .filter((line) => line.includes('"decision:egress"'))
      .map((line) => (JSON.parse(line) as { data: { host: string; verdict: string; reason: string | null } }).data);
    expect(decisions.map(({ host, verdict, reason }) => [host, verdict, reason])).toEqual([
      ['127.0.0.1', 'allow', null],
      ['127.0.0.1', 'deny', 'loopback'],
      ['host.invalid', 'deny', 'no-rule'],
    ]);
  });

  it('starts nothing where the policy requires what is not there, and says what and where', () => {
    mkdirSync(join(user, '.nd7'), { recursive: true, mode: 0o700 });
    writeFileSync(join(user, '.nd7/policy.jsonc'), '{ "nd7": 1, "require": ["observe.exec"] }', { mode: 0o600 });
    const refused = nd7(['run', '--', 'touch', 'ran']);
    expect(refused).toMatchObject({ status: 2, stdout: '' });
    expect(refused.stderr).toMatch(/requires what tier T1 does not give here: observe\.exec/);
    expect(existsSync(join(project, 'ran'))).toBe(false);
    expect(readdirSync(join(user, '.nd7')).filter((name) => name.startsWith('.canary'))).toEqual([]);
  });

  it.each<[string, string[], RegExp]>([
    ['a tier that is not there', ['run', '--tier', 'T9', '--', 'true'], /there is no tier "T9"/],
    ['a profile that nobody knows', ['run', '--profile', 'nope', '--', 'true'], /nope/],
    ['no program', ['run'], /missing required argument/],
  ])('refuses %s', (_what, args, said) => {
    expect(nd7(args)).toMatchObject({ status: 2, stderr: expect.stringMatching(said) as string });
  });

  it('refuses to make a home folder writable', () => {
    expect(nd7(['run', '--', 'true'], { cwd: user })).toMatchObject({
      status: 2,
      stderr: expect.stringContaining('is no project') as string,
    });
    expect(nd7(['run', '--', 'true'], { cwd: '/' })).toMatchObject({
      status: 2,
      stderr: expect.stringContaining('is no project') as string,
    });
  });

  it('takes the repository for the project, from any folder in it', () => {
    spawnSync('git', ['init', '-q', project]);
    mkdirSync(join(project, 'a/b'), { recursive: true });
    expect(nd7(['run', '--', 'sh', '-c', 'touch ../../top && pwd'], { cwd: join(project, 'a/b') })).toMatchObject({
      status: 0,
      stdout: `${join(project, 'a/b')}\n`,
    });
  });
});

const hasTmux = spawnSync('tmux', ['-V']).status === 0;
(hasTmux ? describe : describe.skip)('nd7 run in a terminal [tmux]', () => {
  let socket: string;
  const tmux = (...args: string[]): string =>
    spawnSync('tmux', ['-S', socket, ...args], { encoding: 'utf8', env: environment() }).stdout;
  const screen = (): string => tmux('capture-pane', '-p', '-t', 's');
  const type = (text: string): void => {
    tmux('send-keys', '-t', 's', '-l', text);
    tmux('send-keys', '-t', 's', 'Enter');
  };
  async function see(pattern: RegExp): Promise<void> {
    const end = Date.now() + 30_000;
    while (!pattern.test(screen())) {
      if (Date.now() > end) throw new Error(`${String(pattern)} did not come:\n${screen()}`);
      await new Promise((done) => setTimeout(done, 50));
    }
  }
  const RUN = `${PROGRAM} ${MAIN} run --`;

  beforeEach(async () => {
    socket = join(user, 'tmux');
    writeFileSync(join(user, 'rc'), "PS1='ready> '\n");
    tmux(
      '-f',
      '/dev/null',
      'new-session',
      '-d',
      '-s',
      's',
      '-x',
      '150',
      '-y',
      '50',
      '-c',
      project,
      `bash --noprofile --rcfile '${join(user, 'rc')}' -i`,
    );
    await see(/^ready>$/m);
  });
  afterEach(() => void tmux('kill-server'));

  it('has the terminal’s name and size, follows a resize, and ends by Ctrl-C', async () => {
    type('tty; stty size');
    await see(/ready>\n*$/);
    const [, name = ''] = /^(\/dev\/pts\/\d+)$/m.exec(screen()) ?? [];
    type(`clear; ${RUN} bash -c 'trap "stty size" WINCH; tty; stty size; until read -t 0.1 line; do :; done'`);
    await see(new RegExp(`^${name}\\n50 150$`, 'm'));
    tmux('resize-window', '-t', 's', '-x', '120', '-y', '40');
    await see(/^40 120$/m);
    type('typed');
    await see(/^ready>$/m);
    type(`clear; ${RUN} sh -c 'echo up; exec sleep 1000'`);
    await see(/^up$/m);
    tmux('send-keys', '-t', 's', 'C-c');
    await see(/^\^C\n?ready>$/m);
    type('echo "code $?"');
    await see(/^code 130$/m);
  });

  it('stops by Ctrl-Z and by the program’s own stop, and goes on by fg', async () => {
    type(`clear; ${RUN} sh -c 'echo one; read line; echo "got $line"; kill -STOP $$; echo three; exit 4'`);
    await see(/^one$/m);
    tmux('send-keys', '-t', 's', 'C-z');
    await see(/Stopped/);
    type('clear; jobs; fg');
    await see(/sh -c/);
    type('typed');
    await see(/got typed[\s\S]*Stopped/);
    type('fg');
    await see(/^three$/m);
    type('echo "code $?"');
    await see(/^code 4$/m);
  });

  it('leaves a shell inside its job control', async () => {
    type(`clear; ${RUN} bash --noprofile --norc -i`);
    await see(/^bash-[\d.]+[#$]$/m);
    type("PS1='in> '; sleep 1000");
    await see(/^in> sleep 1000$|sleep 1000$/m);
    tmux('send-keys', '-t', 's', 'C-z');
    await see(/\[1\]\+ {2}Stopped/);
    type('kill %1; wait; jobs; exit 6');
    await see(/^exit\nready>$/m);
    type('echo "code $?"');
    await see(/^code 6$/m);
  });
});
