// Servers inside, reached from this machine by the ports that a policy names.
import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { get, request } from 'node:http';
import { connect, createServer, type AddressInfo } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { BIN, removeThrowAways, throwAway } from '../testing/recorder.fixture.js';

let home: string;
let project: string;
const running: ChildProcess[] = [];
beforeEach(() => {
  home = throwAway('nd7-ingress-');
  project = join(home, 'project');
  mkdirSync(project);
  writeFileSync(join(project, 'file'), 'of the project\n');
});
afterEach(async () => {
  for (const child of running.splice(0)) {
    if (child.exitCode === null && child.signalCode === null) {
      child.kill('SIGTERM');
      await once(child, 'exit');
    }
  }
  removeThrowAways();
});

const environment = (): Record<string, string> => ({ PATH: process.env['PATH'] ?? '', HOME: home, LANG: 'C.UTF-8' });

function policy(network: Record<string, unknown>): void {
  mkdirSync(join(home, '.nd7'), { recursive: true, mode: 0o700 });
  writeFileSync(join(home, '.nd7/policy.jsonc'), JSON.stringify({ nd7: 1, network }), { mode: 0o600 });
}

function start(...argv: string[]): ChildProcess {
  const child = spawn(process.execPath, [BIN, 'run', '--', ...argv], {
    cwd: project,
    env: environment(),
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  running.push(child);
  return child;
}

/** Waits until a server inside has said that it listens. */
async function said(child: ChildProcess): Promise<void> {
  if (child.stdout !== null) await once(child.stdout, 'data');
}

async function freePorts(count: number): Promise<number[]> {
  const servers = await Promise.all(
    Array.from({ length: count }, async () => {
      const server = createServer();
      await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
      return server;
    }),
  );
  const ports = servers.map((server) => (server.address() as AddressInfo).port);
  await Promise.all(servers.map((server) => new Promise((done) => server.close(done))));
  return ports;
}

async function ask(port: number, path = '/'): Promise<string> {
  const asked = get({ host: '127.0.0.1', port, path, agent: false });
  try {
    const [answer] = await once(asked, 'response');
    return await text(answer as NodeJS.ReadableStream);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code ?? String(error);
  }
}

function entries(): { source: string; kind: string; data: Record<string, unknown> }[] {
  const sessions = join(home, '.nd7/sessions');
  const [session = ''] = readdirSync(sessions).filter((name) => name.startsWith('run-'));
  const log = readFileSync(join(sessions, session, 'log.jsonl'), 'utf8')
    .trim()
    .split('\n');
  return log.map((line) => JSON.parse(line) as { source: string; kind: string; data: Record<string, unknown> });
}

const SERVER = `
  const http = require('http');
  const [host, ...ports] = process.argv.slice(1);
  let left = ports.length;
  for (const port of ports)
    http.createServer((asked, answer) => asked.pipe(answer)).listen(Number(port), host, () => --left || console.log('listening'));`;

describe('a server inside', () => {
  it('is reached on the ports that the policy names and on no others, and that is recorded once a port', async () => {
    const [one = 0, other = 0] = await freePorts(2);
    policy({ listen: [one] });
    await said(start('node', '-e', SERVER, '127.0.0.1', String(one), String(other)));
    const posted = request({ host: '127.0.0.1', port: one, method: 'POST', agent: false });
    const body = 'x'.repeat(3_000_000);
    posted.end(body);
    const [answer] = await once(posted, 'response');
    expect((await text(answer as NodeJS.ReadableStream)) === body).toBe(true);
    expect(await Promise.all(Array.from({ length: 100 }, () => ask(one)))).toEqual(Array<string>(100).fill(''));
    expect(await ask(other)).toBe('ECONNREFUSED');
    const used = entries().filter(({ kind }) => kind === 'ingress');
    expect(used).toMatchObject([
      { source: 'decision:ingress', data: { port: one, verdict: 'allow', source: { policy: 'user' } } },
    ]);
  });

  it('may listen on the newer loopback address alone, as some do that are told localhost', async () => {
    const [port = 0] = await freePorts(1);
    policy({ listen: [port] });
    await said(start('node', '-e', SERVER, '::1', String(port)));
    expect(await ask(port)).toBe('');
  });

  it('may be Python’s', async () => {
    const [port = 0] = await freePorts(1);
    policy({ listen: [`${String(port)}-${String(port)}`] });
    start('python3', '-m', 'http.server', String(port));
    let answer = '';
    for (let i = 0; i < 200 && !answer.startsWith('of'); i++) {
      answer = await ask(port, '/file');
      // Nobody listens yet: outside the port is taken, inside there is no one.
      if (!answer.startsWith('of')) expect(answer).toMatch(/^(ECONNRESET|ECONNREFUSED)$/);
      await sleep(50);
    }
    expect(answer).toBe('of the project\n');
  });

  it('does not start where a port is taken outside, and says so', async () => {
    const taken = createServer();
    await new Promise<void>((done) => taken.listen(0, '127.0.0.1', done));
    const { port } = taken.address() as AddressInfo;
    policy({ listen: [port] });
    const { status, stderr } = spawnSync(process.execPath, [BIN, 'run', '--', 'touch', 'ran'], {
      cwd: project,
      env: environment(),
      encoding: 'utf8',
    });
    taken.close();
    expect(status).toBe(2);
    expect(stderr).toContain(
      `port ${String(port)} of this machine cannot be had for servers inside: something else listens on it`,
    );
    expect(stderr).toContain('network.listen');
    expect(readdirSync(project)).toEqual(['file']);
  });

  it.each([
    ['that the proxy has', { listen: [3128] }, 'port 3128 is in network.listen, and inside nd7 itself listens on it'],
    ['that leads out again', { listen: [45_001], loopback: [45_001] }, 'cannot be in network.loopback too'],
    ['with hundreds of others', { listen: ['20000-21000'] }, 'more than 256 ports'],
  ])('cannot have a port %s', (_what, network, message) => {
    policy(network);
    const { status, stderr } = spawnSync(process.execPath, [BIN, 'run', '--', 'true'], {
      cwd: project,
      env: environment(),
      encoding: 'utf8',
    });
    expect([status, stderr]).toEqual([2, expect.stringContaining(message)]);
  });

  it('is told of what a half-closed connection has still to say', async () => {
    const [port = 0] = await freePorts(1);
    policy({ listen: [port] });
    const script = `
      require('net').createServer({ allowHalfOpen: true }, (s) => { let n = 0; s.on('data', (d) => (n += d.length)).on('end', () => s.end('heard ' + n)); })
        .listen(${String(port)}, '127.0.0.1', () => console.log('listening'));`;
    await said(start('node', '-e', script));
    const socket = connect(port, '127.0.0.1');
    socket.end(Buffer.alloc(200_000));
    expect(await text(socket)).toBe('heard 200000');
  });

  it('is gone with its session', async () => {
    const [port = 0] = await freePorts(1);
    policy({ listen: [port] });
    const child = start('node', '-e', SERVER, '127.0.0.1', String(port));
    await said(child);
    const socket = connect(port, '127.0.0.1');
    await once(socket, 'connect');
    const exited = once(child, 'exit');
    const closed = new Promise((done) => socket.on('error', () => undefined).on('close', done));
    child.kill('SIGKILL');
    await Promise.all([closed, exited]);
    expect(await ask(port)).toBe('ECONNREFUSED');
  });
});
