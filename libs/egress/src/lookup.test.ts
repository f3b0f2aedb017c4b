// Names that are looked up where their name server may never answer, or lie: real name servers on loopback, and the C library in a network of its own.
import { execFileSync, spawnSync } from 'node:child_process';
import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { answerQuery, CODE, readQuery, TYPE } from './dns-message.js';
import { lookups, type LookupOptions, type Resolve } from './lookup.js';
import { isPlain, readHosts, searched } from './name-files.js';

let folder: string;
let server: Socket;
/** Names that were asked for, each time for IPv4. */
let asked: string[];
/** What is answered: addresses, a code, or nothing at all. */
let answers: (name: string) => string[] | number | undefined;
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'nd7-names-'));
  [asked, answers] = [[], () => CODE.noName];
  server = createSocket('udp4').bind(0, '127.0.0.1');
  server.on('message', (bytes, from) => {
    const query = readQuery(bytes);
    if ('fault' in query) return;
    if (query.type === TYPE.a) asked.push(query.name);
    const said = answers(query.name);
    if (said === undefined) return;
    const answer =
      typeof said === 'number'
        ? answerQuery(query, said)
        : answerQuery(query, CODE.ok, query.type === TYPE.a ? said : [], 0);
    server.send(answer, from.port, from.address);
  });
  await once(server, 'listening');
});
afterEach(() => {
  server.close();
  rmSync(folder, { recursive: true, force: true });
});

const FILES = { hosts: '127.0.0.1 localhost\n', resolver: 'nameserver 192.0.2.1\n', services: 'hosts: files dns\n' };

function resolver(files: Partial<typeof FILES> = {}, more: Partial<LookupOptions> = {}): Resolve {
  const at = Object.fromEntries(
    Object.entries({ ...FILES, ...files }).map(([name, text]) => {
      writeFileSync(join(folder, name), text);
      return [name, join(folder, name)];
    }),
  ) as unknown as typeof FILES;
  const { port } = server.address() as AddressInfo;
  return lookups({
    withinMs: 1000,
    files: at,
    servers: [`127.0.0.1:${String(port)}`],
    bySystem: () => Promise.reject(new Error('the C library was asked')),
    ...more,
  });
}
const codeOf = (error: unknown): string => (error as NodeJS.ErrnoException).code ?? String(error);

describe('a name', () => {
  it('has the addresses that its server says, and none that it does not', async () => {
    answers = (name) => (name === 'a.example.com' ? ['192.0.2.7', '192.0.2.8'] : CODE.noName);
    const resolve = resolver();
    expect(await resolve('a.example.com', 'z')).toEqual(['192.0.2.7', '192.0.2.8']);
    await expect(resolve('b.example.com', 'z')).rejects.toMatchObject({ code: 'ENOTFOUND' });
    answers = () => CODE.failed;
    await expect(resolve('c.example.com', 'z')).rejects.toMatchObject({ code: 'ESERVFAIL' });
  });

  it('has the addresses of the hosts file, as that is at the moment, and is not asked for outside then', async () => {
    const resolve = resolver({
      hosts: '192.0.2.1 one.example.com ONE.example.org # two.example.com\n2001:db8::1 one.example.com\n',
    });
    expect(await resolve('one.example.com', 'z')).toEqual(['192.0.2.1', '2001:db8::1']);
    expect(await resolve('one.example.org', 'z')).toEqual(['192.0.2.1']);
    await expect(resolve('two.example.com', 'z')).rejects.toMatchObject({ code: 'ENOTFOUND' });
    writeFileSync(join(folder, 'hosts'), '192.0.2.22 two.example.com\n');
    expect(await resolve('two.example.com', 'z')).toEqual(['192.0.2.22']);
    expect(asked).toEqual(['two.example.com']);
  });

  it('is looked up below the domains that this machine searches, where it is not there itself', async () => {
    answers = (name) => (name === 'git.corp.example.net' ? ['192.0.2.9'] : CODE.noName);
    const resolve = resolver({ resolver: 'nameserver 192.0.2.1\nsearch example.org example.net.\n' });
    expect(await resolve('git.corp', 'z')).toEqual(['192.0.2.9']);
    expect(asked).toEqual(['git.corp', 'git.corp.example.org', 'git.corp.example.net']);
  });

  it('has addresses of one family though the server says nothing of the other', async () => {
    server.removeAllListeners('message').on('message', (bytes, from) => {
      const query = readQuery(bytes);
      if (!('fault' in query) && query.type === TYPE.a)
        server.send(answerQuery(query, CODE.ok, ['192.0.2.5'], 0), from.port, from.address);
    });
    const before = performance.now();
    expect(await resolver({}, { withinMs: 5000 })('a.example.com', 'z')).toEqual(['192.0.2.5']);
    expect(performance.now() - before).toBeLessThan(2000);
  });
});

describe('a name server that never answers', () => {
  it('keeps nobody but its own zone waiting, and that for a bounded time', async () => {
    answers = (name) => (name.endsWith('.hostile.example') ? undefined : ['192.0.2.7']);
    const resolve = resolver();
    const before = performance.now();
    const hostile = Array.from({ length: 300 }, (_, i) =>
      resolve(`n${String(i)}.hostile.example`, '*.hostile.example').then(String, codeOf),
    );
    for (let i = 0; i < 20; i++) {
      const start = performance.now();
      expect(await resolve(`n${String(i)}.example.com`, '*.example.com')).toEqual(['192.0.2.7']);
      // And files, which are read in the threads that the C library would have held.
      await readFile(join(folder, 'hosts'));
      expect(performance.now() - start).toBeLessThan(500);
    }
    const early = asked.filter((name) => name.endsWith('.hostile.example'));
    const codes = await Promise.all(hostile);
    expect(performance.now() - before).toBeLessThan(3000);
    expect([...new Set(codes)].sort()).toEqual(['EBUSY', 'ETIMEDOUT']);
    // Those that have waited all their time are asked for too where a place is free in that moment.
    expect(new Set(early)).toEqual(new Set(Array.from({ length: 32 }, (_, i) => `n${String(i)}.hostile.example`)));
    // The places are free again.
    answers = () => ['192.0.2.8'];
    expect(await resolve('later.hostile.example', '*.hostile.example')).toEqual(['192.0.2.8']);
  });

  it('of names that only the C library knows has one thread of its', async () => {
    let held = 0;
    const over: (() => void)[] = [];
    const bySystem = async (name: string): Promise<string[]> => {
      if (!name.endsWith('.hostile.example')) return ['192.0.2.1'];
      held++;
      await new Promise<void>((done) => over.push(done));
      return ['192.0.2.66'];
    };
    const resolve = resolver({ services: 'hosts: files ldap dns\n' }, { bySystem, withinMs: 300 });
    const hostile = [1, 2, 3].map((i) => resolve(`n${String(i)}.hostile.example`, 'hostile').then(String, codeOf));
    expect(await resolve('a.example.com', 'other')).toEqual(['192.0.2.1']);
    expect(await Promise.all(hostile)).toEqual(['ETIMEDOUT', 'EBUSY', 'EBUSY']);
    // The thread is still held, whoever has given up.
    expect(await resolve('n4.hostile.example', 'hostile').then(String, codeOf)).toBe('EBUSY');
    expect(held).toBe(1);
    over.splice(0).forEach((done) => done());
    await sleep(10);
    expect([asked, await resolve('b.example.com', 'other')]).toEqual([[], ['192.0.2.1']]);
  });
});

describe('what decides who is asked', () => {
  const STUB = 'nameserver 127.0.0.53\n';
  it.each([
    ['a.example.com', undefined, '', true],
    ['a.example.com', 'passwd: files\nhosts: files dns\n', '', true],
    ['a.example.com', 'hosts:          files mdns4_minimal [NOTFOUND=return] dns\n', '', true],
    ['printer.local', 'hosts: files mdns4_minimal [NOTFOUND=return] dns\n', '', false],
    ['intranet', 'hosts: files dns\n', '', false],
    ['a.example.com', 'hosts: mymachines resolve [!UNAVAIL=return] files myhostname dns', STUB, true],
    ['a.example.com', 'hosts: files resolve [!UNAVAIL=return] dns', 'nameserver 192.0.2.1\n', false],
    ['a.example.com', 'hosts: dns files', '', false],
    ['a.example.com', 'hosts: files', '', false],
    ['a.example.com', 'hosts: files [NOTFOUND=return] dns', '', false],
    ['a.example.com', 'hosts: files sss dns', '', false],
    ['a.example.com', 'hosts: dns # files', '', false],
  ])('of %s with %j and %j', (name, services, resolv, plain) => {
    expect(isPlain(name, services, resolv)).toBe(plain);
  });

  it('is read as the C library reads it', () => {
    expect(searched('a.b', 'search x y\ndomain z\n')).toEqual(['a.b', 'a.b.z']);
    expect(searched('a.b', 'search x # y\noptions rotate ndots:2\n')).toEqual(['a.b.x', 'a.b']);
    expect([...readHosts('  192.0.2.1\ta.b. c # d\nno address\n::1%lo e\n')]).toEqual([
      ['a.b', ['192.0.2.1']],
      ['c', ['192.0.2.1']],
      ['e', ['::1%lo']],
    ]);
  });
});

const canOwn = process.platform === 'linux' && spawnSync('unshare', ['-rmn', 'true']).status === 0;

// In a network of its own, with files of its own in place of this machine's.
(canOwn ? it : it.skip)('the proxy looks names up so on a machine whose name server never answers', () => {
  const script = join(folder, 'script.mjs');
  const dist = fileURLToPath(new URL('../dist/lookup.js', import.meta.url));
  writeFileSync(
    script,
    `import { createSocket } from 'node:dgram';
     import { lookups } from ${JSON.stringify(dist)};
     const server = createSocket('udp4').bind(53, '127.0.0.1');
     await new Promise((done) => server.once('listening', done));
     let asked = 0;
     server.on('message', () => asked++);
     const resolve = lookups({ withinMs: 800 });
     const before = performance.now();
     const hostile = Array.from({ length: 40 }, (_, i) => resolve('n' + i + '.hostile.example', 'hostile').catch(({ code }) => code));
     const there = await resolve('there.example.com', 'other');
     const ms = performance.now() - before;
     console.log(JSON.stringify({ there, quick: ms < 400, codes: (await Promise.all(hostile)).every((code) => ['ETIMEDOUT', 'EBUSY'].includes(code)), asked: asked > 0 }));
     process.exit(0);`,
  );
  for (const [name, text] of [
    ['resolv.conf', 'nameserver 127.0.0.1\n'],
    ['hosts', '192.0.2.4 there.example.com\n'],
    ['nsswitch.conf', 'hosts: files dns\n'],
  ] as const)
    writeFileSync(join(folder, name), text);
  const mounts = ['resolv.conf', 'hosts', 'nsswitch.conf'].map(
    (name) => `mount --bind ${folder}/${name} "$(readlink -f /etc/${name})"`,
  );
  const inOwn = `${mounts.join(' && ')} && ip link set lo up && exec "$0" "$1"`;
  const said = execFileSync('unshare', ['-rmn', 'sh', '-c', inOwn, process.execPath, script], {
    encoding: 'utf8',
    timeout: 20_000,
  });
  expect(JSON.parse(said)).toEqual({ there: ['192.0.2.4'], quick: true, codes: true, asked: true });
});
