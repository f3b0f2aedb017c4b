// `nd7 run` in tier T2: asked for, taken where a system refuses namespaces, and refused where a policy wants no less than T1.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import { createServer, request } from 'node:http';
import { tmpdir } from 'node:os';
import { Person } from '../testing/person.fixture.js';
import { BIN } from '../testing/recorder.fixture.js';

let person: Person;
let project: string;
beforeEach(() => {
  person = new Person(tmpdir());
  ({ project } = person);
});
afterEach(() => person.end());

const environment = (): Record<string, string> => person.environment;
const policy = (more: object): void => person.policy(more);
const nd7 = (...args: string[]) => person.nd7(args);
const refused = (...args: string[]) => person.refused('namespaces', args);
const tierOf = (stderr: string): string => (JSON.parse(stderr.split('\n').at(-2) ?? '') as { tier: string }).tier;
const recorded = (): string[] =>
  person.log().flatMap((line) => /"kind":"enforcement","data":\{"tier":"(T\d)"/.exec(line)?.[1] ?? []);

describe('nd7 run in tier T2', () => {
  it('gives the program its streams and its exit code, and says in manifest and record which tier it is', () => {
    const { status, stdout, stderr } = nd7(
      'run',
      '--json',
      '--tier',
      'T2',
      '--',
      'sh',
      '-c',
      'echo x > made; cat made; exit 7',
    );
    expect([status, stdout, tierOf(stderr), recorded()]).toEqual([7, 'x\n', 'T2', ['T2']]);
  });

  (process.arch === 'x64' ? it : it.skip)(
    'is taken where the system refuses namespaces, unless something asks for T1',
    () => {
      expect(tierOf(nd7('run', '--json', '--', 'true').stderr)).toBe('T1');
      const taken = refused('run', '--json', '--', 'echo', 'ran');
      expect([taken.status, taken.stdout, tierOf(taken.stderr)]).toEqual([0, 'ran\n', 'T2']);
      const asked = refused('run', '--tier', 'T1', '--', 'echo', 'ran');
      expect(asked).toMatchObject({ status: 2, stdout: '' });
      expect(asked.stderr).toMatch(/refuses the namespaces of tier T1/);
      policy({ weakestTier: 'T1' });
      expect(refused('run', '--', 'echo', 'ran')).toMatchObject({ status: 2, stdout: '' });
      expect(nd7('run', '--tier', 'T2', '--', 'true').stderr).toMatch(/takes nothing weaker than tier T1/);
      expect(refused('doctor').stdout).toMatch(
        /nd7 run confines in tier T2, and in T3 where it is asked for .*not in T1: namespaces are refused/,
      );
    },
  );

  it('starts nothing where the policy requires what it does not give', () => {
    policy({ require: ['network.loopback'] });
    const { status, stderr } = nd7('run', '--tier', 'T2', '--', 'touch', 'ran');
    expect([status, readdirSync(project)]).toEqual([2, []]);
    expect(stderr).toMatch(/requires what tier T2 does not give here: network\.loopback/);
  });

  it('lets out through the proxy, which hears nobody else', async () => {
    const server = createServer((_asked, response) => response.end('OUTSIDE')).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as { port: number };
    policy({ network: { loopback: [String(port)] } });
    const script = `curl -sS -m 9 --noproxy '' --proxy $HTTP_PROXY http://127.0.0.1:${port}/; curl -sS -m 9 --noproxy '*' http://127.0.0.1:${port}/
      curl -sS -m 9 --noproxy '' --proxy $HTTP_PROXY -o /dev/null -w '%{http_code}' http://127.0.0.1:1/; echo; echo $HTTP_PROXY; cat`;
    const child = spawn(process.execPath, [BIN, 'run', '--tier', 'T2', '--', 'sh', '-c', script], {
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
    // The same request from outside is cut off unheard.
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
});
