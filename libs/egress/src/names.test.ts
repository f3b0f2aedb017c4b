import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { createSocket, type Socket as Datagrams } from 'node:dgram';
import { Resolver } from 'node:dns/promises';
import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { rule, TestNet } from './egress.fixture.js';

let net: TestNet;
let datagrams: Datagrams;
let resolver: Resolver;
beforeEach(async () => {
  net = await new TestNet().start();
  net.rules.hosts.push(
    rule('api.example.com', { ports: { from: 443, to: 443 } }),
    rule('*.wild.example'),
    rule('no.wild.example', { allow: false }),
  );
  datagrams = createSocket('udp4');
  datagrams.bind(0, '127.0.0.1');
  await once(datagrams, 'listening');
  net.egress.serveNames(datagrams);
  resolver = new Resolver({ timeout: 3000, tries: 1 });
  resolver.setServers([`127.0.0.1:${String(datagrams.address().port)}`]);
});
afterEach(async () => {
  datagrams.close();
  await net.stop();
});

const codeOf = (asked: Promise<unknown>): Promise<unknown> =>
  asked.then(
    () => undefined,
    (error: NodeJS.ErrnoException) => error.code,
  );

describe('the name server', () => {
  it('answers names that may be reached at some port with an address, the same one each time', async () => {
    expect(await resolver.resolve4('API.example.com', { ttl: true })).toEqual([{ address: '198.18.0.1', ttl: 60 }]);
    expect(await resolver.resolve4('a.wild.example')).toEqual(['198.18.0.2']);
    expect(await resolver.resolve4('api.example.com')).toEqual(['198.18.0.1']);
    expect(await codeOf(resolver.resolve6('api.example.com'))).toBe('ENODATA');
    expect(await codeOf(resolver.resolveMx('api.example.com'))).toBe('ENODATA');
  });

  it('knows no other name, and asks nobody about any', async () => {
    for (const name of ['evil.example', 'wild.example', 'no.wild.example', 'secret.api.example.com', 'localhost'])
      expect([name, await codeOf(resolver.resolve4(name))]).toEqual([name, 'ENOTFOUND']);
    expect(await codeOf(resolver.resolveTxt('c2VjcmV0.evil.example'))).toBe('ENOTFOUND');
    expect(await codeOf(resolver.resolveSrv('_ldap._tcp.wild.example'))).toBe('ENOTFOUND');
    expect(await codeOf(resolver.reverse('198.18.0.1'))).toBe('ENOTFOUND');
    expect([net.lookedUp, net.dialled]).toEqual([[], []]);
  });

  it('records each answer once, with the rule that decided', async () => {
    for (let i = 0; i < 3; i++) {
      await resolver.resolve4('Api.example.com');
      await codeOf(resolver.resolve4('evil.example'));
      await codeOf(resolver.resolve4('no.wild.example'));
    }
    const told = { via: 'dns', port: null, addresses: [] };
    const [api, , denial] = net.rules.hosts;
    expect(net.decisions).toEqual([
      { ...told, host: 'api.example.com', verdict: 'allow', reason: null, source: api?.source },
      { ...told, host: 'evil.example', verdict: 'deny', reason: 'no-rule', source: null },
      { ...told, host: 'no.wild.example', verdict: 'deny', reason: 'denied', source: denial?.source },
    ]);
  });

  it('answers by the rules of the moment, and records what has changed', async () => {
    await resolver.resolve4('api.example.com');
    const [first] = net.rules.hosts.splice(0, 1);
    expect(await codeOf(resolver.resolve4('api.example.com'))).toBe('ENOTFOUND');
    net.rules.hosts.push(first as (typeof net.rules.hosts)[number]);
    expect(await resolver.resolve4('api.example.com')).toEqual(['198.18.0.1']);
    expect(net.decisions.map(({ verdict }) => verdict)).toEqual(['allow', 'deny']);
  });

  it('gives no answer that cannot be recorded, and tries again', async () => {
    net.record = () => Promise.reject(new Error('disk full'));
    expect(await codeOf(resolver.resolve4('api.example.com'))).toBe('ESERVFAIL');
    expect(await codeOf(resolver.resolve4('evil.example'))).toBe('ESERVFAIL');
    net.record = () => Promise.resolve();
    expect(await resolver.resolve4('api.example.com')).toEqual(['198.18.0.1']);
  });

  it('answers over TCP too, several queries on one connection, and cuts what is no query', async () => {
    const listener = createServer();
    net.egress.serveNames(listener);
    const port = await net.listen(listener);
    const query = (name: string): Buffer => {
      const labels = name.split('.').flatMap((label) => [label.length, ...Buffer.from(label)]);
      const bytes = [0, 7, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, ...labels, 0, 0, 1, 0, 1];
      return Buffer.from([0, bytes.length, ...bytes]);
    };
    const socket = connect(port, '127.0.0.1');
    const both = Buffer.concat([query('api.example.com'), query('evil.example')]);
    // In pieces, as a stream may come.
    socket.write(both.subarray(0, 1));
    setTimeout(() => socket.write(both.subarray(1, 40)), 20);
    setTimeout(() => socket.write(Buffer.concat([both.subarray(40), Buffer.from([0xff, 0xff])])), 40);
    const heard: Buffer[] = [];
    socket.on('data', (bytes: Buffer) => heard.push(bytes));
    await once(socket, 'close');
    const answers = Buffer.concat(heard);
    const length = answers.readUInt16BE(0);
    expect([answers.subarray(2 + length - 4, 2 + length), (answers[2 + length + 2 + 3] as number) & 15]).toEqual([
      Buffer.of(198, 18, 0, 1),
      3,
    ]);
  });

  it('asks who does not listen to its answers to wait, and then goes: nothing is kept for it', async () => {
    const listener = createServer();
    net.egress.serveNames(listener);
    const port = await net.listen(listener);
    const served = once(listener, 'connection') as Promise<[Socket]>;
    const name = [3, ...Buffer.from('api'), 7, ...Buffer.from('example'), 3, ...Buffer.from('com'), 0, 0, 1, 0, 1];
    const bytes = [0, 7, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, ...name];
    const many = Buffer.concat(Array.from({ length: 2_000 }, () => Buffer.from([0, bytes.length, ...bytes])));
    const socket = connect(port, '127.0.0.1').on('error', () => undefined);
    const [there] = await served;
    let most = 0;
    const look = setInterval(() => (most = Math.max(most, there.writableLength)), 5);
    const ask = (): void => {
      while (!socket.destroyed && socket.write(many)) continue;
    };
    socket.on('drain', ask);
    ask();
    await once(there, 'close');
    clearInterval(look);
    socket.destroy();
    expect(most).toBeLessThan(256 << 10);
  }, 30_000);

  it('is silent about what is no query, and goes on', async () => {
    const socket = createSocket('udp4');
    const { port } = datagrams.address();
    for (const bytes of [Buffer.alloc(0), Buffer.alloc(11), Buffer.alloc(65_000, 255)])
      socket.send(bytes, port, '127.0.0.1');
    expect(await resolver.resolve4('api.example.com')).toEqual(['198.18.0.1']);
    socket.close();
  });
});
