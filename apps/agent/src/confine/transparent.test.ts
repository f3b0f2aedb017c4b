// Programs that know of no proxy, inside: they ask for names and connect, and get out by the rules that hold for the proxy.
import { execFileSync, spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { createSocket } from 'node:dgram';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer as createHttp } from 'node:http';
import { createServer as createHttps } from 'node:https';
import { connect, createServer, type AddressInfo } from 'node:net';
import { userInfo } from 'node:os';
import { join } from 'node:path';
import { stopTestPostgres, testDatabase } from '@nd7/testing';
import { removeThrowAways } from '../testing/recorder.fixture.js';
import { TestSession } from './session.fixture.js';

let session: TestSession;
afterEach(() => {
  session.close();
  removeThrowAways();
});
afterAll(stopTestPostgres);

/** What every program is told of the proxy, taken away from one. */
const UNTOLD = [
  'env',
  ...['HTTP', 'HTTPS', 'ALL'].flatMap((name) => ['-u', `${name}_PROXY`, '-u', `${name.toLowerCase()}_proxy`]),
];
const node = (script: string): string[] => [process.execPath, '-e', script];

describe('the transparent way out', () => {
  beforeEach(async () => {
    session = new TestSession({
      network: { allow: ['api.example.com', 'plain.example.com:80', '*.wild.example', 'db.example.com:15432'] },
    });
    const { cert, key } = session.certificate('api.example.com', 'a.wild.example', 'evil.example');
    const tls = { cert: readFileSync(cert), key: readFileSync(key) };
    session.environment['NODE_EXTRA_CA_CERTS'] = cert;
    await session.host(
      'api.example.com',
      443,
      createHttps(tls, (_, answer) => answer.end('answer of api')),
    );
    await session.host(
      'evil.example',
      443,
      createHttps(tls, (_, answer) => answer.end('answer of evil')),
    );
    await session.host(
      'plain.example.com',
      80,
      createHttp((asked, answer) => answer.end(`answer of ${asked.headers.host ?? ''}`)),
    );
    await session.host(
      'db.example.com',
      15_432,
      createHttps(tls, (_, answer) => answer.end('answer of db')),
    );
  });

  it('lets fetch of Node out, which looks for no proxy', async () => {
    const script = `fetch('https://api.example.com/').then((a) => a.text()).then(console.log, (e) => console.log(e.cause?.code ?? e))`;
    expect(await session.run(node(script))).toEqual({ code: 0, stdout: 'answer of api\n', stderr: '' });
    expect(session.decisions).toMatchObject([
      { via: 'dns', host: 'api.example.com', port: null, verdict: 'allow' },
      { via: 'transparent', host: 'api.example.com', port: 443, verdict: 'allow' },
    ]);
    expect(session.lookedUp).toEqual(['api.example.com']);
  });

  it('lets curl out that is told of no proxy, over TLS and in plain', async () => {
    const curl = (...args: string[]) => session.run([...UNTOLD, 'curl', '-sS', '--cacert', 'cert.pem', ...args]);
    expect((await curl('https://api.example.com/')).stdout).toBe('answer of api');
    expect((await curl('http://plain.example.com/')).stdout).toBe('answer of plain.example.com');
    const refused = await curl('-H', 'Host: evil.example', 'http://plain.example.com/');
    expect(refused.stdout).toContain('nd7: the request for plain.example.com:80 has Host: evil.example');
  });

  it('lets nobody out to what is not listed: not by name, not by another name in TLS, not by address', async () => {
    const curl = (...args: string[]) => session.run([...UNTOLD, 'curl', '-sS', '-k', '-m', '20', ...args]);
    expect((await curl('https://evil.example/')).stderr).toContain('Could not resolve host');
    expect((await curl('--connect-to', 'evil.example:443:api.example.com:443', 'https://evil.example/')).code).not.toBe(
      0,
    );
    expect((await curl('https://93.184.216.2/')).stderr).toMatch(
      /Couldn't connect|Network is unreachable|Failed to connect/,
    );
    expect((await curl('https://198.18.77.77/')).stderr).toMatch(/reset|Couldn't connect|SSL/i);
    expect((await curl('https://plain.example.com/')).code).not.toBe(0);
    expect((await curl('https://127.0.0.1/')).stderr).toMatch(/reset|Couldn't connect|SSL/i);
    expect(session.lookedUp).toEqual(['api.example.com']);
    expect(session.decisions.filter(({ via, verdict }) => via === 'transparent' && verdict === 'deny')).toMatchObject([
      { host: 'api.example.com', reason: 'other-name' },
      { host: 'plain.example.com', port: 443, reason: 'no-rule' },
    ]);
  });

  it('answers all that asks for names: the C library, datagrams of one’s own, TCP', async () => {
    const script = `
      const dns = require('dns'); const r = new dns.promises.Resolver(); r.setServers(['127.0.0.1']);
      (async () => {
        console.log(require('fs').readFileSync('/etc/resolv.conf', 'utf8').match(/^nameserver.*$/gm).join());
        console.log((await dns.promises.lookup('a.wild.example', { all: true })).map((a) => a.address).join());
        console.log(await r.resolve4('a.wild.example'), await r.resolve4('secret.evil.example').catch((e) => e.code));
        console.log(await dns.promises.lookup('secret.evil.example').catch((e) => e.code));
      })();`;
    const { stdout } = await session.run(node(script));
    const [server, looked, asked, refused] = stdout.split('\n');
    expect(server).toBe('nameserver 127.0.0.1');
    expect(looked).toMatch(/^198\.18\.\d+\.\d+$/);
    expect([asked, refused]).toEqual([`[ '${looked ?? ''}' ] ENOTFOUND`, 'ENOTFOUND']);
    expect(session.lookedUp).toEqual([]);
  });

  it('reaches a host at a port of its own, and keeps that port free on loopback', async () => {
    const script = `
      const fs = require('fs'), https = require('https');
      https.get('https://db.example.com:15432/', { rejectUnauthorized: false, servername: 'db.example.com' }, (a) => a.on('data', (d) => console.log(String(d))))
        .on('error', (e) => console.log(e.code));
      const own = require('net').createServer().listen(15432, '127.0.0.1', () => { console.log('bound'); own.close(); });
      own.on('error', (e) => console.log(e.code));`;
    expect((await session.run(node(script))).stdout.split('\n').sort()).toEqual(['', 'answer of db', 'bound']);
  });

  it('lets no datagrams out but questions for names', async () => {
    const outside = await datagramsOutside();
    const script = `
      const s = require('dgram').createSocket('udp4');
      const say = (port, host) => new Promise((done) => s.send('x', port, host, (e) => done(e ? e.code : 'sent')));
      (async () => { console.log(await say(53, '8.8.8.8'), await say(443, '198.18.0.1'), await say(${String(outside.port)}, '127.0.0.1')); s.close(); })();`;
    const { stdout } = await session.run(node(script));
    // Sent on the session's own loopback, where nobody hears it.
    expect(stdout).toBe('ENETUNREACH sent sent\n');
    expect(outside.heard).toEqual([]);
    outside.close();
  });
});

/** A datagram socket outside, on loopback. */
async function datagramsOutside(): Promise<{ port: number; heard: string[]; close: () => void }> {
  const socket = createSocket('udp4');
  const heard: string[] = [];
  socket.on('message', (bytes) => heard.push(String(bytes)));
  await new Promise<void>((done) => socket.bind(0, '127.0.0.1', done));
  return { port: socket.address().port, heard, close: () => socket.close() };
}

describe('protocols in which the server speaks first, or TLS is asked for later', () => {
  it('are let out where the rule is raw: psql by the name of its host', async () => {
    const [, user = '', folder = '', port = '', database = ''] =
      /^postgres:\/\/([^@]+)@([^:]+):(\d+)\/(.+)$/.exec(await testDatabase()) ?? [];
    session = new TestSession({ network: { allow: [{ host: 'db.example.com:5432', raw: true }] } });
    // The cluster of tests listens on a unix socket only.
    const cluster = join(decodeURIComponent(folder), `.s.PGSQL.${port}`);
    const server = createServer((socket) => socket.pipe(connect(cluster)).pipe(socket));
    await session.host('db.example.com', 5432, server);
    const where = ['-h', 'db.example.com', '-U', user, '-d', database];
    const { stdout, stderr } = await session.run(['psql', ...where, '-Atc', 'select 6 * 7']);
    expect([stdout, stderr]).toEqual(['42\n', '']);
    expect(session.decisions).toMatchObject([
      { via: 'dns' },
      { via: 'transparent', host: 'db.example.com', port: 5432, verdict: 'allow' },
    ]);
  });

  const SSHD = '/usr/sbin/sshd';
  const withServer = existsSync(SSHD) && existsSync('/usr/bin/ssh-keygen') ? it : it.skip;
  withServer('git over ssh to a host that is listed, with the keys of hosts that the person knows', async () => {
    session = new TestSession({
      network: { allow: [{ host: 'git.example.com:22', raw: true }] },
      files: { read: { allow: ['~/.ssh/known_hosts', '~/.ssh/config', '~/.ssh/id'] } },
    });
    const server = await sshServer(session);
    try {
      session.place('git.example.com', 22, server.port);
      const { code, stderr } = await session.run([
        ...['env', `GIT_SSH_COMMAND=ssh -F ${session.home}/.ssh/config`, 'git', 'clone', '-q'],
        `ssh://${userInfo().username}@git.example.com${server.repository}`,
        'clone',
      ]);
      expect([code, stderr]).toEqual([0, '']);
      expect(readFileSync(join(session.project, 'clone/file'), 'utf8')).toBe('content\n');
      expect((await session.run(['sh', '-c', 'cat ~/.ssh/other; echo x >> ~/.ssh/known_hosts'])).stderr).toMatch(
        /Permission denied|No such file/,
      );
    } finally {
      server.process.kill();
    }
  });
});

/** An ssh server of the test's own on loopback, with a repository and a client's key and configuration below the session's home. */
async function sshServer({ home }: TestSession): Promise<{ port: number; repository: string; process: ChildProcess }> {
  const [folder, ssh] = [join(home, 'server'), join(home, '.ssh')];
  for (const made of [folder, ssh]) mkdirSync(made, { mode: 0o700 });
  const git = (...args: string[]) =>
    execFileSync('git', ['-c', 'user.name=t', '-c', 'user.email=t@example.com', ...args], {
      cwd: folder,
      stdio: 'ignore',
    });
  git('init', '-q', 'repository');
  writeFileSync(join(folder, 'repository/file'), 'content\n');
  git('-C', 'repository', 'add', 'file');
  git('-C', 'repository', 'commit', '-qm', 'first');
  for (const key of [join(folder, 'host'), join(ssh, 'id')])
    spawnSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', key]);
  writeFileSync(join(ssh, 'other'), 'SECRET', { mode: 0o600 });
  const [type, blob] = readFileSync(join(folder, 'host.pub'), 'utf8').split(' ');
  writeFileSync(join(ssh, 'known_hosts'), `git.example.com ${type ?? ''} ${blob ?? ''}\n`);
  // ssh takes the home folder from the user database, which knows nothing of the test's: so the configuration is named.
  const client = ['IdentityFile', 'UserKnownHostsFile'].map(
    (name, i) => `${name} ${join(ssh, ['id', 'known_hosts'][i] ?? '')}`,
  );
  writeFileSync(join(ssh, 'config'), [...client, 'BatchMode yes', ''].join('\n'), { mode: 0o600 });
  const port = await freePort();
  const settings = [
    'ListenAddress 127.0.0.1',
    `Port ${String(port)}`,
    `HostKey ${join(folder, 'host')}`,
    `AuthorizedKeysFile ${join(ssh, 'id.pub')}`,
  ];
  const loose = ['StrictModes no', 'UsePAM no', 'PermitRootLogin yes', `PidFile ${join(folder, 'pid')}`];
  writeFileSync(join(folder, 'config'), [...settings, ...loose, ''].join('\n'));
  if (process.geteuid?.() === 0) mkdirSync('/run/sshd', { recursive: true, mode: 0o755 });
  const server = spawn('/usr/sbin/sshd', ['-D', '-e', '-f', join(folder, 'config')], {
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  await new Promise<void>((done) =>
    server.stderr?.on('data', (bytes: Buffer) => (String(bytes).includes('listening') ? done() : undefined)),
  );
  return { port, repository: join(folder, 'repository'), process: server };
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  const { port } = server.address() as AddressInfo;
  await new Promise((done) => server.close(done));
  return port;
}
