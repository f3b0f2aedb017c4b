// Each rung for real: servers are started and asked who they are. The container rung needs a Docker engine; without one it is skipped by name.
import { execFile } from 'node:child_process';
import { chmodSync, cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { dockerAnswers, startPostgres } from './ladder.js';

const dist = join(import.meta.dirname, '..', 'dist');
const isRoot = process.getuid?.() === 0;
const hasEngine = await dockerAnswers(process.env);
const scratch: string[] = [];

function folder(prefix = 'nd7-ladder-'): string {
  const path = mkdtempSync(join(tmpdir(), prefix));
  scratch.push(path);
  return path;
}

afterAll(() => {
  for (const path of scratch) rmSync(path, { recursive: true, force: true });
});

/** Starts a server in a process of its own (so that it can be another user, or see another file system) and says what it got. */
function startElsewhere(
  dataDir: string,
  options: { wrap?: string[]; env?: NodeJS.ProcessEnv; uid?: number; lib?: string } = {},
): Promise<{ rung: string; description: string }> {
  const script = `
    const { startPostgres } = await import(${JSON.stringify(join(options.lib ?? dist, 'index.js'))});
    const running = await startPostgres({ dataDir: ${JSON.stringify(dataDir)}, durable: false });
    process.stdout.write(JSON.stringify(running));
    await running.stop();`;
  const [command, ...args] = [...(options.wrap ?? []), process.execPath, '--input-type=module', '-e', script];
  return new Promise((done, fail) => {
    const identity = options.uid === undefined ? {} : { uid: options.uid, gid: options.uid };
    execFile(
      command ?? '',
      args,
      { env: { PATH: process.env['PATH'], ...options.env }, cwd: '/', ...identity },
      (error, stdout, stderr) => {
        if (error === null) done(JSON.parse(stdout) as { rung: string; description: string });
        else fail(new Error(`${stderr}${stdout}`));
      },
    );
  });
}

describe('the ladder', () => {
  it('takes the URL that is named before anything else', async () => {
    const running = await startPostgres({
      dataDir: folder(),
      durable: false,
      env: { ND7_DATABASE_URL: 'postgres://h/d' },
    });
    expect(running).toMatchObject({ rung: 'url', url: 'postgres://h/d' });
  });

  it('takes the binaries of this machine, and a second start finds its data again', async () => {
    const dataDir = folder();
    const first = await startPostgres({ dataDir, durable: true, rung: 'system', env: {} });
    await first.stop();
    const second = await startPostgres({ dataDir, durable: true, rung: 'system', env: {} });
    await second.stop();
    expect(second.description).toBe(first.description);
  });

  it('takes the binaries from npm', async () => {
    const running = await startPostgres({ dataDir: folder(), durable: false, rung: 'embedded', env: {} });
    expect(running.description).toMatch(/PostgreSQL 18.* from npm/);
    await running.stop();
  });

  (hasEngine ? it : it.skip)(
    '[docker] takes a container where an engine answers (skip by name: no engine here)',
    async () => {
      const running = await startPostgres({ dataDir: folder(), durable: false, rung: 'container', env: process.env });
      expect(running.rung).toBe('container');
      await running.stop();
    },
  );

  it('says what each rung lacked, and what to do', async () => {
    await expect(startPostgres({ dataDir: folder(), durable: false, rung: 'url', env: {} })).rejects.toThrow(
      /ND7_DATABASE_URL is not set.*Install one/,
    );
    await expect(startPostgres({ dataDir: folder(), durable: false, env: { ND7_POSTGRES: 'oracle' } })).rejects.toThrow(
      /"oracle"; it can be url, container, system, embedded/,
    );
  });

  it('starts over where an initdb was killed half way', async () => {
    const dataDir = folder();
    mkdirSync(join(dataDir, 'system-15', 'base'), { recursive: true });
    const running = await startPostgres({ dataDir, durable: false, rung: 'system', env: {} });
    await running.stop();
    expect(running.rung).toBe('system');
  });
});

const asRoot = isRoot ? it : it.skip;
describe('as root (skip by name: needs root)', () => {
  const hideBinaries = [
    'unshare',
    '-m',
    '--propagation',
    'private',
    'sh',
    '-c',
    'mount -t tmpfs none /usr/lib/postgresql; exec "$0" "$@"',
  ];

  asRoot('falls to npm’s binaries when the system has none', async () => {
    mkdirSync('/usr/lib/postgresql', { recursive: true });
    expect(await startElsewhere(folder(), { wrap: hideBinaries })).toMatchObject({ rung: 'embedded' });
  });

  asRoot('runs as nobody where there is no user postgres', async () => {
    const passwd = join(folder(), 'passwd');
    writeFileSync(passwd, readFileSync('/etc/passwd', 'utf8').replace(/^postgres:.*\n/m, ''));
    const hide = [
      'unshare',
      '-m',
      '--propagation',
      'private',
      'sh',
      '-c',
      `mount --bind ${passwd} /etc/passwd; exec "$0" "$@"`,
    ];
    expect(await startElsewhere(folder(), { wrap: hide, env: { ND7_POSTGRES: 'embedded' } })).toMatchObject({
      rung: 'embedded',
    });
  });

  asRoot.each(['system', 'embedded'])('keeps its data elsewhere when the home is 0700 (%s)', async (rung) => {
    const home = folder();
    chmodSync(home, 0o700);
    const answer = await startElsewhere(join(home, 'checkout', '.nd7-dev'), { env: { ND7_POSTGRES: rung } });
    expect(answer.description).toMatch(/\/var\/tmp\/nd7-postgres-[0-9a-f]{16}$/);
    rmSync(answer.description.slice(answer.description.indexOf('/var/tmp')), { recursive: true, force: true });
  });

  asRoot('works for an ordinary user', async () => {
    const place = folder();
    chmodSync(place, 0o755);
    cpSync(dist, join(place, 'lib'), { recursive: true });
    writeFileSync(join(place, 'package.json'), '{"type":"module"}');
    const data = join(place, 'data');
    mkdirSync(data);
    chmodSync(data, 0o777);
    expect(await startElsewhere(join(data, 'own'), { uid: 65534, lib: join(place, 'lib') })).toMatchObject({
      rung: 'system',
    });
  });
});
