// What people have reported of other sandboxes, tried as it was reported where no other test does (docs/peers.md has all of them): each in tiers T1 and T2.
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:net';
import { homedir } from 'node:os';
import { join } from 'node:path';

const BIN = join(import.meta.dirname, '../../apps/agent/bin/nd7.js');
const TIERS = ['T1', 'T2'] as const;
const hasPython = spawnSync('python3', ['--version']).status === 0;

let home: string;
let project: string;

/** Where homes can lie: beside those of people for root, in one's own for others. */
const homes = (): string => (process.geteuid?.() === 0 ? '/home' : homedir());
const environment = () => ({ PATH: process.env['PATH'] ?? '/usr/bin:/bin', HOME: home, TERM: 'xterm' });
const git = (folder: string, ...args: string[]): string =>
  execFileSync('git', ['-C', folder, '-c', 'user.name=n', '-c', 'user.email=n@x', ...args], {
    encoding: 'utf8',
    env: environment(),
  }).trim();

function nd7(args: string[], cwd = project) {
  const { status, stdout, stderr } = spawnSync(process.execPath, [BIN, ...args], {
    ...{ cwd, encoding: 'utf8', env: environment(), input: '', timeout: 60_000 },
  });
  return { status, stdout, stderr };
}
const inside = (tier: string, script: string, cwd = project) =>
  nd7(['run', '--tier', tier, '--', 'sh', '-c', script], cwd);
const policy = (document: object): void =>
  writeFileSync(join(home, '.nd7/policy.jsonc'), JSON.stringify({ nd7: 1, ...document }), { mode: 0o600 });
const log = (): string =>
  readdirSync(join(home, '.nd7/sessions'))
    .map((session) => readFileSync(join(home, '.nd7/sessions', session, 'log.jsonl'), 'utf8'))
    .join('');

beforeEach(() => {
  home = realpathSync(mkdtempSync(join(homes(), 'nd7-reports-')));
  project = join(home, 'project');
  mkdirSync(project);
  mkdirSync(join(home, '.nd7'), { mode: 0o700 });
});
afterEach(() => {
  spawnSync(process.execPath, [BIN, 'recorder', '--stop'], { env: environment() });
  rmSync(home, { recursive: true, force: true, maxRetries: 10, retryDelay: 50 });
});

describe.each(TIERS)('in %s', (tier) => {
  it('a socket that is denied cannot be connected to, and why says so; granted, both say the other', async () => {
    const path = join(home, 'docker.sock');
    const server = createServer((socket) => socket.end('HELLO')).listen(path);
    await once(server, 'listening');
    const script = `require('net').connect('${path}').on('data', (d) => console.log(String(d))).on('error', (e) => console.log(e.code))`;
    const connect = async (...more: string[]): Promise<string> => {
      const words = [BIN, 'run', '--tier', tier, ...more, '--', process.execPath, '-e', script];
      const child = spawn(process.execPath, words, {
        cwd: project,
        env: environment(),
        stdio: ['ignore', 'pipe', 'ignore'],
      });
      const [said] = (await once(child.stdout, 'data')) as [Buffer];
      return said.toString().trim();
    };
    const why = (): string => nd7(['why', '--socket', path, '--json']).stdout;
    expect(why()).toMatch(/"outcome": ?"denied"/);
    expect(await connect()).toMatch(/^E(ACCES|PERM|NOENT|CONNREFUSED)$/);
    if (tier === 'T1') {
      policy({ sockets: { allow: [path] } });
      expect(why()).toMatch(/"outcome": ?"allowed"/);
      expect(await connect()).toBe('HELLO');
    }
    server.close();
  });

  (hasPython ? it : it.skip)(
    'a program whose parents have gone uses sockets as before, and paired sockets are whole',
    () => {
      writeFileSync(
        join(project, 'orphan.py'),
        `
import os, socket, sys, time, urllib.request, urllib.error
if os.fork(): sys.exit(0)
os.setsid()
if os.fork(): os._exit(0)
time.sleep(0.3)
server = socket.socket(); server.bind(('127.0.0.1', 0)); server.listen()
client = socket.create_connection(server.getsockname()); client.send(b'x')
said = [server.accept()[0].recv(1).decode()]
try: urllib.request.build_opener(urllib.request.ProxyHandler({'http': os.environ['http_proxy']})).open('http://a.invalid/')
except urllib.error.HTTPError as error: said.append(str(error.code))
open('orphaned', 'w').write(' '.join(said))
`,
      );
      writeFileSync(
        join(project, 'paired.py'),
        `
import asyncio, socket
async def main():
    child = await asyncio.create_subprocess_exec('cat', stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE)
    print((await child.communicate(b'piped'))[0].decode())
asyncio.run(main())
a, b = socket.socketpair()
a.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 8192)
a.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
a.sendall(b'sent'); print(b.recv(9).decode(), a.getpeername() == '')
`,
      );
      const { stdout, status } = inside(
        tier,
        `python3 orphan.py; for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do [ -s orphaned ] && break; sleep 0.2; done; cat orphaned; echo; python3 paired.py && printf piped | node -e 'process.stdin.on("data", (d) => console.log(String(d)))'`,
      );
      expect([status, stdout]).toEqual([0, 'x 403\npiped\nsent True\npiped\n']);
    },
  );

  it('leaves nothing in an empty repository, also where it is killed', async () => {
    git(project, 'init', '-q');
    const listed = (): string[] => readdirSync(project, { recursive: true, encoding: 'utf8' }).sort();
    const before = listed();
    for (let i = 0; i < 3; i++) expect(inside(tier, 'true').status).toBe(0);
    for (let i = 0; i < 3; i++) {
      const words = [BIN, 'run', '--tier', tier, '--', 'sh', '-c', 'echo up; sleep 30'];
      const child = spawn(process.execPath, words, {
        cwd: project,
        env: environment(),
        stdio: ['ignore', 'pipe', 'ignore'],
      });
      await once(child.stdout, 'data');
      child.kill('SIGKILL');
      await once(child, 'close');
    }
    expect(inside(tier, 'true').status).toBe(0);
    expect([listed(), git(project, 'status', '--short')]).toEqual([before, '']);
  });

  it('starts with rules for what is not there or cannot be written, and holds the others', () => {
    mkdirSync(join(home, '.ssh'));
    writeFileSync(join(home, '.ssh/id'), 'SECRET');
    policy({
      files: {
        read: { deny: ['~/absent/deep/secret', '/proc/absent', '~/.ssh'], allow: ['~/absent/too'] },
        write: { deny: ['/usr/absent/x'] },
      },
    });
    const { status, stdout } = inside(tier, 'echo on; cat ~/.ssh/id; mkdir -p ~/absent/deep; true');
    expect([status, stdout, existsSync(join(home, 'absent'))]).toEqual([0, 'on\n', false]);
  });

  it('hides what a rule for reading means, by every name, and nothing beside it', () => {
    for (const folder of ['sec', 'secret', 'sec/deep']) mkdirSync(join(home, folder));
    for (const name of ['sec/a', 'sec/deep/b', 'secret/c']) writeFileSync(join(home, name), `IS-${name}`);
    symlinkSync(join(home, 'sec/a'), join(project, 'link'));
    symlinkSync(join(home, 'sec'), join(project, 'folder'));
    policy({ files: { read: { deny: ['~/sec'], allow: ['~/secret'] } } });
    const { stdout } = inside(
      tier,
      `cat ~/sec/a ~/sec/deep/b link folder/deep/b /proc/self/root${home}/sec/a ~/secret/../sec/a; ln ~/sec/a hard && cat hard; cat ~/secret/c`,
    );
    expect(stdout).toBe('IS-secret/c');
  });

  it('confines every part of a command line, whatever its first word is', () => {
    inside(tier, 'docker ps; touch ~/out; git status || touch ~/out2; env -i sh -c "touch ~/out3"');
    expect(readdirSync(home).filter((name) => name.startsWith('out'))).toEqual([]);
  });

  it('plants nothing that git or an editor runs outside later, and the record names each', () => {
    git(project, 'init', '-q', '-b', 'main');
    writeFileSync(join(project, 'f'), 'x');
    git(project, 'add', '.');
    git(project, 'commit', '-qm', 'x');
    const canary = join(home, 'canary');
    const run = `touch ${canary}`;
    const sinks = [
      `git config core.fsmonitor '${run}; false'`,
      `git config diff.external '${run}'`,
      `git config filter.x.clean '${run}'; echo '* filter=x' > .gitattributes`,
      `git config core.hooksPath hooks; mkdir hooks; printf '#!/bin/sh\\n${run}\\n' > hooks/pre-commit; chmod +x hooks/pre-commit`,
      `printf '#!/bin/sh\\n${run}\\n' > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit`,
      `git config alias.status '!${run}'`,
      `git config include.path ../evil; printf '[core]\\n\\tfsmonitor = ${run}\\n' > evil`,
      `mkdir .vscode; echo '{"tasks": []}' > .vscode/tasks.json`,
      `echo '${run}' > .envrc`,
    ];
    inside(tier, sinks.map((sink) => `( ${sink} ) 2>/dev/null`).join('\n'));
    writeFileSync(join(project, 'f'), 'y');
    git(project, 'status');
    git(project, 'diff');
    git(project, 'commit', '-qam', 'y');
    expect([
      existsSync(canary),
      existsSync(join(project, '.vscode/tasks.json')),
      existsSync(join(project, '.envrc')),
    ]).toEqual([false, false, false]);
    for (const key of [
      'core.fsmonitor',
      'diff.external',
      'filter.x.clean',
      'core.hooksPath',
      'alias.status',
      'include.path',
    ].map((key) => key.toLowerCase()))
      expect(log().toLowerCase()).toContain(key);
  });

  it('works in a linked work tree whose repository lies elsewhere where that is allowed, and its hooks and configuration stay as they are', () => {
    const main = join(home, 'main');
    const linked = join(home, 'linked');
    mkdirSync(main);
    git(main, 'init', '-q', '-b', 'main');
    writeFileSync(join(main, 'f'), 'x');
    git(main, 'add', '.');
    git(main, 'commit', '-qm', 'x');
    git(main, 'worktree', 'add', '-q', linked);
    const config = readFileSync(join(main, '.git/config'), 'utf8');
    const commit = `git status >/dev/null && echo status; echo y > f; git -c user.name=n -c user.email=n@x commit -qam y && echo commit; touch ${main}/.git/hooks/pre-commit; git config core.fsmonitor x; cp f ${main}/.git/config`;
    expect(inside(tier, commit, linked).stdout).toBe('status\n');
    const words = ['run', '--tier', tier, '--allow', `write:${main}/.git`, '--', 'sh', '-c', commit];
    expect(nd7(words, linked).stdout).toBe('status\ncommit\n');
    expect([existsSync(join(main, '.git/hooks/pre-commit')), readFileSync(join(main, '.git/config'), 'utf8')]).toEqual([
      false,
      config,
    ]);
  });
});
