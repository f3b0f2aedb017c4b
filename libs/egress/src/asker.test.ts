// Who asks, and what went through: found out once for each connection, the same whoever moves the bytes.
import { afterEach, describe, expect, it } from '@jest/globals';
import { once } from 'node:events';
import { createServer as createHttp, request } from 'node:http';
import { createServer } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import type { NetworkRules } from '@nd7/policy';
import type { Asker, EndedConnection, Ends } from './decision.js';
import { MOVERS, rule, TestNet, tlsEcho, tlsThrough } from './egress.fixture.js';

describe.each(MOVERS)('where %s moves the bytes', (_name, mover) => {
  let net: TestNet;
  let asked: Ends[];
  let ended: EndedConnection[];
  /** By the port of the program's end. */
  const named = ({ from }: Ends): Asker => ({ entry: { tied: 'process', pid: from.port }, key: `of ${from.port % 2}` });

  async function start(more: object = {}): Promise<void> {
    [asked, ended] = [[], []];
    net = await new TestNet().start({
      ...mover,
      askerOf: (ends: Ends) => {
        asked.push(ends);
        return sleep(5).then(() => named(ends));
      },
      ended: (one: EndedConnection) => ended.push(one),
      ...more,
    });
    await net.host(
      'git.example.com',
      22,
      createServer({ allowHalfOpen: true }, (socket) => {
        let heard = 0;
        socket.on('data', (bytes) => (heard += bytes.length)).on('end', () => socket.end(Buffer.alloc(3 * heard)));
        socket.on('error', () => undefined);
      }),
    );
    net.rules.hosts.push(rule('git.example.com', { raw: true }));
  }
  afterEach(() => net.stop());
  const told = async (count: number): Promise<EndedConnection[]> => {
    while (ended.length < count) await sleep(5);
    return ended;
  };

  it('a tunnel has a number, who asked, and at its end what went through', async () => {
    await start();
    asked.length = 0;
    const { socket } = await net.tunnel('git.example.com:22');
    const { localPort = 0 } = socket;
    socket.end(Buffer.alloc(100_000));
    expect((await buffer(socket)).length).toBe(300_000);
    const asker = { entry: { tied: 'process', pid: localPort }, key: `of ${localPort % 2}` };
    expect(asked).toEqual([
      { from: { address: '127.0.0.1', port: localPort }, to: { address: '127.0.0.1', port: net.port } },
    ]);
    expect(net.decisions).toMatchObject([{ verdict: 'allow', connection: 1, asker }]);
    expect(await told(1)).toEqual([
      {
        ...{ connection: 1, via: 'connect', host: 'git.example.com', port: 22, asker },
        ...{ sent: 100_000, received: 300_000, ms: expect.any(Number) as unknown as number },
      },
    ]);
  });

  it('a hello that was refused, and a request over HTTP and one by SOCKS have them too', async () => {
    await start();
    await net.host('api.example.com', 443, tlsEcho(), '93.184.216.35');
    net.rules.hosts.push(rule('api.example.com'));
    const cut = await net.tunnel('api.example.com:443');
    cut.socket.on('error', () => undefined).write('GET / HTTP/1.1\r\n\r\n');
    await once(cut.socket, 'close');
    expect(await told(1)).toMatchObject([{ connection: 1, sent: 0, received: 0 }]);
    expect(net.decisions.map(({ verdict, asker }) => [verdict, asker?.key.slice(0, 3)])).toEqual([
      ['allow', 'of '],
      ['deny', 'of '],
    ]);
    await net.host(
      'plain.example.com',
      80,
      createHttp((_, answer) => answer.end('x'.repeat(1_000))),
      '93.184.216.36',
    );
    net.rules.hosts.push(rule('plain.example.com'));
    const sent = request({ port: net.port, path: 'http://plain.example.com/', headers: { host: 'plain.example.com' } });
    const [response] = (await once(sent.end(), 'response')) as [NodeJS.ReadableStream];
    await buffer(response);
    const [, http] = await told(2);
    expect(http).toMatchObject({ connection: 2, via: 'http', host: 'plain.example.com' });
    expect(http?.received).toBeGreaterThan(1_000);
    const socks = net.client();
    socks.write(Buffer.concat([Buffer.of(5, 1, 0, 5, 1, 0, 3, 15), Buffer.from('git.example.com'), Buffer.of(0, 22)]));
    socks.end('four');
    expect((await buffer(socks)).length).toBe(2 + 10 + 12);
    expect((await told(3))[2]).toMatchObject({ connection: 3, via: 'socks5', sent: 4, received: 12 });
  });

  it('the same answer to another asker is one that is new, and to the same one it repeats', async () => {
    const repeated: boolean[] = [];
    let key = 'one';
    await start({
      askerOf: () => ({ entry: {}, key }),
      record: (_: unknown, is: boolean) => Promise.resolve(void repeated.push(is)),
    });
    for (const next of ['one', 'one', 'two', 'two', 'one']) {
      key = next;
      (await net.tunnel('git.example.com:22')).socket.destroy();
    }
    expect(repeated).toEqual([false, true, false, true, true]);
  });

  it('rules are asked for the one who asks, also when those of an open tunnel change', async () => {
    let who: Asker = { entry: {}, key: 'in' };
    const none: NetworkRules = { hosts: [], bounds: [], listen: [], loopback: [], credentials: [] };
    let isOver = false;
    await start({ askerOf: () => who, rules: (asker?: Asker) => (asker?.key === 'in' && !isOver ? net.rules : none) });
    const { socket, answer } = await net.tunnel('git.example.com:22');
    expect(answer).toMatch(/^HTTP\/1\.1 200 /);
    who = { entry: {}, key: 'out' };
    expect((await net.tunnel('git.example.com:22')).answer).toMatch(/^HTTP\/1\.1 403 /);
    expect(net.egress.recheck()).toBe(0);
    isOver = true;
    expect(net.egress.recheck()).toBe(1);
    await once(
      socket.resume().on('error', () => undefined),
      'close',
    );
  });

  it('what went through open tunnels is told before the proxy has finished', async () => {
    await start();
    await net.host('api.example.com', 443, tlsEcho(), '93.184.216.35');
    net.rules.hosts.push(rule('api.example.com'));
    const raw = await net.tunnel('git.example.com:22');
    raw.socket.on('error', () => undefined).write('12345');
    const { socket } = await net.tunnel('api.example.com:443');
    const secure = await tlsThrough(socket, 'api.example.com');
    secure.on('error', () => undefined).write('over and back');
    await once(secure, 'data');
    await net.egress.finish();
    expect(ended.map(({ host }) => host).sort()).toEqual(['api.example.com', 'git.example.com']);
    expect(ended.find(({ host }) => host === 'git.example.com')).toMatchObject({ sent: 5, received: 0 });
    expect(ended.find(({ host }) => host === 'api.example.com')?.received).toBeGreaterThan(100);
  });

  it('who cannot be told is nobody, and is served as ever', async () => {
    await start({ askerOf: () => Promise.reject(new Error('no such process')) });
    expect((await net.tunnel('git.example.com:22')).answer).toMatch(/^HTTP\/1\.1 200 /);
    expect(net.decisions[0]).not.toHaveProperty('asker');
  });
});
