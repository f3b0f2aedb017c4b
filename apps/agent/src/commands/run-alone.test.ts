// `nd7 run` in tier T3: only where it is asked for, with what it cannot refuse told at the end, and a way out that hears its session alone.
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { createServer, request } from 'node:http';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { Person } from '../testing/person.fixture.js';
import { BIN } from '../testing/recorder.fixture.js';

let person: Person;
let user: string;
let project: string;
beforeEach(() => {
  person = new Person();
  ({ user, project } = person);
});
afterEach(() => person.end());

const environment = (): Record<string, string> => person.environment;
const policy = (more: object): void => person.policy(more);
const nd7 = (...args: string[]) => person.nd7(args);
const refused = (...args: string[]) => person.refused('namespaces and supervisors', args);
const log = (): string[] => person.log();

describe('nd7 run in tier T3', () => {
  it('gives the program its streams and its exit code, and says what the tier does not hold', () => {
    const { status, stdout, stderr } = nd7('run', '--tier', 'T3', '--', 'sh', '-c', 'echo x > made; cat made; exit 7');
    expect([status, stdout]).toEqual([7, 'x\n']);
    expect(stderr).toMatch(/tier T3, .* does not hold files\.leaves, network\.proxy/);
    expect(log().filter((line) => line.includes('"kind":"enforcement","data":{"tier":"T3"')).length).toBe(1);
  });

  it('ends where the session cannot be prepared, since the disk is read-only', () => {
    const readOnly =
      'mount -t tmpfs -o size=1m,mode=700 none "$HOME/.nd7" && (umask 77; echo "{\\"nd7\\":1,\\"recording\\":\\"best-effort\\"}" > "$HOME/.nd7/policy.jsonc") && mount -o remount,ro "$HOME/.nd7"';
    for (const tier of ['T2', 'T3']) {
      const inOwn = ['-rm', 'sh', '-c', `${readOnly}; exec "$0" "$@"`, process.execPath, BIN];
      const how = { cwd: project, env: environment(), timeout: 10_000 };
      const { status, signal } = spawnSync('unshare', [...inOwn, 'run', '--tier', tier, '--', 'touch', 'ran'], how);
      expect([tier, signal, status === 0, readdirSync(project)]).toEqual([tier, null, false, []]);
    }
  });

  it('ends, and says why, where the policy asks for a way out that is not there', () => {
    const from = { variable: 'TOKEN' };
    policy({
      network: { allow: ['r.example.com'] },
      credentials: [{ name: 'r', hosts: ['r.example.com'], way: 'terminate', from }],
    });
    const how = { cwd: project, env: environment(), encoding: 'utf8', timeout: 20_000 } as const;
    const args = [BIN, 'run', '--tier', 'T3', '--', 'touch', 'ran'];
    const { status, signal, stderr } = spawnSync(process.execPath, args, how);
    expect([status, signal, readdirSync(project)]).toEqual([2, null, []]);
    expect(stderr).toContain('put on by ending TLS');
  });

  it('tells and records what became of protected names, and what in a repository runs something', () => {
    spawnSync('git', ['init', '-q'], { cwd: project });
    mkdirSync(join(project, '.claude'));
    writeFileSync(join(project, '.claude/settings.json'), '{}');
    const script = `touch .envrc; echo '{"hooks":1}' > .claude/settings.json; git config user.name me; exit 3`;
    const first = nd7('run', '--tier', 'T3', '--', 'sh', '-c', script);
    expect(first.status).toBe(3);
    expect(first.stderr).toMatch(/changed 2 protected names/);
    expect(first.stderr).toMatch(/made .*\.envrc: direnv runs it/);
    expect(first.stderr).toMatch(/changed .*\.claude\/settings\.json/);
    // What the mediator of git's configuration lets through elsewhere is told of nobody here.
    expect(first.stderr).not.toContain('.git/config');
    const entries = log().filter((line) => line.includes('"kind":"file.late"'));
    const data = entries.map((line) => (JSON.parse(line) as { data: Record<string, unknown> }).data);
    expect(data.map(({ verdict, change, path }) => [verdict, change, String(path).slice(project.length + 1)])).toEqual([
      ['late', 'changed', '.claude/settings.json'],
      ['late', 'made', '.envrc'],
      ['allow', 'changed', '.git/config'],
    ]);
    expect(data[0]).toMatchObject({
      was: { kind: 'file', size: 2, sha256: expect.stringMatching(/^[0-9a-f]{64}$/) as string },
      is: { kind: 'file', size: 12 },
      treatment: 'refuse',
    });
    const second = nd7('run', '--tier', 'T3', '--', 'git', 'config', 'core.fsmonitor', './x');
    expect(second.stderr).toMatch(/changed .*\.git\/config \(core\.fsmonitor\)/);
    const third = nd7('run', '--tier', 'T3', '--', 'true');
    expect(third.stderr).not.toMatch(/protected name/);
    expect(log().some((line) => line.includes('"kind":"file.compared"') && line.includes('"late":0'))).toBe(true);
  });

  it.each(['the next session', 'a recorder'])('that is killed has its names compared by %s, once', async (who) => {
    writeFileSync(join(project, '.envrc'), 'before');
    const script = 'echo after > .envrc; touch .mcp.json up; exec sleep 600';
    const session = spawn(process.execPath, [BIN, 'run', '--tier', 'T3', '--', 'sh', '-c', script], {
      cwd: project,
      env: environment(),
      stdio: 'ignore',
    });
    while (!existsSync(join(project, 'up'))) await delay(20);
    session.kill('SIGKILL');
    await once(session, 'close');
    if (who === 'a recorder') {
      const own = (name: string): string => JSON.stringify(join(import.meta.dirname, '../../dist', name));
      const ends = `const { endDeadSessions } = await import(${own('recorder/doors.js')}); const { openHome } = await import('@nd7/journal'); console.log(await endDeadSessions(openHome(process.env.HOME + '/.nd7'), 'recorder started'));`;
      const ended = spawnSync(process.execPath, ['--input-type=module', '-e', ends], {
        cwd: import.meta.dirname,
        env: environment(),
        encoding: 'utf8',
      });
      expect(ended.stdout).toMatch(/run-[0-9a-f]{16}/);
      expect(nd7('doctor').stdout).toMatch(/killed session .*changed .*\.envrc: direnv runs it/);
    }
    const next = nd7('run', '--tier', 'T3', '--', 'true');
    expect(next.stderr).toMatch(/of session run-[0-9a-f]{16}, which was killed:\n.*changed 2 protected names/);
    expect(next.stderr).toMatch(/changed .*\.envrc: direnv runs it/);
    expect(next.stderr).toMatch(/made .*\.mcp\.json/);
    const first = log().filter((line) => /"kind":"(file\.late|file\.compared|session\.end)"/.test(line));
    const ends = first.findIndex((line) => line.includes('process gone'));
    expect(first.slice(0, ends + 1).filter((line) => line.includes('"kind":"file.late"'))).toHaveLength(2);
    expect(first.slice(ends + 1).filter((line) => line.includes('"kind":"file.late"'))).toHaveLength(0);
    expect(nd7('run', '--tier', 'T3', '--', 'true').stderr).not.toMatch(/killed/);
    expect(readdirSync(join(user, '.nd7/run')).filter((name) => /^[ln]-/.test(name))).toEqual([]);
  });

  (process.arch === 'x64' ? it : it.skip)('is never taken unasked, and offered where nothing else can be had', () => {
    const { status, stdout, stderr } = refused('run', '--', 'touch', 'ran');
    expect([status, stdout, existsSync(join(project, 'ran'))]).toEqual([2, '', false]);
    expect(stderr).toMatch(/neither tier T1 nor T2 can be had here/);
    expect(stderr).toMatch(/nd7 run --tier T3.*does not refuse that protected names/);
    expect(refused('run', '--tier', 'T3', '--', 'echo', 'ran')).toMatchObject({ status: 0, stdout: 'ran\n' });
    // Where nobody can be asked about a call, new terminals are closed too, and the manifest says so.
    const without = refused('run', '--tier', 'T3', '--verbose', '--', 'script', '-qec', 'true', '/dev/null');
    expect([without.status === 0, without.stderr]).toEqual([
      false,
      expect.stringContaining('nobody can be asked about a call here') as string,
    ]);
    expect(refused('doctor').stdout).toMatch(/nd7 run confines in tier T3 alone .*--tier T3/);
    policy({ weakestTier: 'T3' });
    expect(refused('run', '--', 'echo', 'ran')).toMatchObject({ status: 0, stdout: 'ran\n' });
    // A machine that gives more gives it.
    expect(nd7('run', '--json', '--', 'true').stderr).toMatch(/"tier":"T1"/);
  });

  it('is not taken where a policy of the person’s own says otherwise, or requires what it does not give', () => {
    policy({ weakestTier: 'T2' });
    expect(nd7('run', '--tier', 'T3', '--', 'touch', 'ran').stderr).toMatch(/takes nothing weaker than tier T2/);
    policy({ require: ['files.leaves'] });
    const { status, stderr } = nd7('run', '--tier', 'T3', '--', 'touch', 'ran');
    expect([status, readdirSync(project)]).toEqual([2, []]);
    expect(stderr).toMatch(/requires what tier T3 does not give here: files\.leaves/);
    policy({});
    mkdirSync(join(project, '.nd7'));
    writeFileSync(join(project, '.nd7/policy.jsonc'), '{"nd7": 1, "weakestTier": "T1"}');
    spawnSync('git', ['init', '-q'], { cwd: project });
    expect(nd7('run', '--tier', 'T3', '--', 'touch', 'ran').stderr).toMatch(/takes nothing weaker than tier T1/);
  });

  it('lets out through the proxy, which hears nobody else', async () => {
    const server = createServer((_asked, response) => response.end('OUTSIDE')).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as { port: number };
    policy({ network: { loopback: [String(port)] } });
    const script = `curl -sS -m 9 --noproxy '' --proxy $HTTP_PROXY http://127.0.0.1:${port}/; curl -sS -m 9 --noproxy '*' http://127.0.0.1:${port}/
      curl -sS -m 9 --noproxy '' --proxy $HTTP_PROXY -o /dev/null -w '%{http_code}' http://127.0.0.1:1/; echo; echo $HTTP_PROXY; cat`;
    const child = spawn(process.execPath, [BIN, 'run', '--tier', 'T3', '--', 'sh', '-c', script], {
      cwd: project,
      env: environment(),
    });
    let said = '';
    const spoke = new Promise<void>((done) =>
      child.stdout.on('data', (bytes: Buffer) => {
        said += bytes.toString();
        if (said.includes('http://')) done();
      }),
    );
    await Promise.race([spoke, once(child, 'close')]);
    const [answers = '', proxy = ''] = said.trim().split('\n');
    expect(answers).toBe('OUTSIDEOUTSIDE403');
    const { hostname, port: at } = new URL(proxy);
    const outside = await new Promise<string>((done) =>
      request({ hostname, port: at, path: `http://127.0.0.1:${port}/` }, (given) => done(String(given.statusCode)))
        .on('error', (error: NodeJS.ErrnoException) => done(error.code ?? ''))
        .end(),
    );
    child.stdin.end();
    await once(child, 'close');
    server.close();
    expect(outside).toBe('ECONNRESET');
  });

  it('answers what a program inside asks, through a door of its own', () => {
    const { stdout, stderr } = nd7('run', '--tier', 'T3', '--', 'sh', '-c', 'echo $ND7_SOCKET; nd7 why /etc/shadow');
    expect([stdout, stderr]).toEqual([
      expect.stringMatching(/^tcp:\d+\ndenied {2}\/etc\/shadow is hidden/) as string,
      expect.not.stringContaining('not inside') as string,
    ]);
  });
});
