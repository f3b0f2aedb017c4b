// Attacks on the proxy itself: it may refuse and be slow, but lets nothing out and goes on.
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { once } from 'node:events';
import { createServer as createHttp } from 'node:http';
import { connect, createServer, type Socket } from 'node:net';
import { MOVERS, rule, TestNet, tlsEcho, tlsThrough } from './egress.fixture.js';

describe.each(MOVERS)('where %s moves the bytes', (_name, mover) => {
  let net: TestNet;
  beforeEach(async () => {
    net = await new TestNet().start({ ...mover, most: 64 });
    await net.host('api.example.com', 443, tlsEcho());
    net.rules.hosts.push(rule('api.example.com'));
  });
  afterEach(() => net.stop());

  const closed = (socket: Socket): Promise<unknown> =>
    new Promise((done) => socket.on('error', () => undefined).on('close', done));

  /** Whether a program is served as if nothing were. */
  async function isServed(): Promise<boolean> {
    const { socket, answer } = await net.tunnel('api.example.com:443');
    if (!answer.startsWith('HTTP/1.1 200 ')) return false;
    (await tlsThrough(socket, 'api.example.com')).destroy();
    return true;
  }

  describe('the proxy', () => {
    it.each([
      ['says nothing', ''],
      ['begins a head and never ends it', 'GET http://api.example.com/ HTTP/1.1\r\nx: '],
      ['begins a tunnel and never ends its head', 'CONNECT api.example.com:443 HTTP/1.1\r\nx: '],
      ['begins to speak SOCKS', '\x05\x01'],
    ])('waits for nobody who %s, though a byte comes now and then', async (_what, bytes) => {
      const slow = Array.from({ length: 60 }, () => {
        const socket = net.client();
        socket.write(bytes, 'latin1');
        return { socket, over: closed(socket) };
      });
      const drip = setInterval(
        () => bytes !== '' && slow.forEach(({ socket }) => socket.writable && socket.write('\0')),
        100,
      );
      expect(await isServed()).toBe(true);
      await Promise.all(slow.map(({ over }) => over));
      clearInterval(drip);
      expect(await isServed()).toBe(true);
      expect(net.dialled.filter((at) => !at.endsWith(' 443'))).toEqual([]);
    });

    it('waits for nobody who keeps a connection and begins a second request', async () => {
      const server = createHttp((_, answer) => answer.end('answer'));
      await net.host('plain.example.com', 80, server, '93.184.216.35');
      net.rules.hosts.push(rule('plain.example.com'));
      const socket = net.client();
      const over = closed(socket);
      const request = 'GET http://plain.example.com/ HTTP/1.1\r\nHost: plain.example.com\r\n\r\n';
      socket.write(request);
      await once(socket, 'data');
      socket.write(request.slice(0, 20));
      const drip = setInterval(() => socket.writable && socket.write('x'), 100);
      await over;
      clearInterval(drip);
    });

    it('goes on after three thousand connections, of which it takes so many at once', async () => {
      for (let wave = 0; wave < 15; wave++) {
        const sockets = Array.from({ length: 200 }, () => net.client());
        const over = sockets.map(closed);
        await Promise.all(
          sockets.map((socket) => new Promise((done) => socket.once('error', done).once('connect', done))),
        );
        sockets.forEach((socket) => socket.destroy());
        await Promise.all(over);
      }
      expect(await isServed()).toBe(true);
    }, 120_000);

    it('serves nobody once it is closed, though its listener still hears', async () => {
      net.egress.close();
      expect(await net.say('GET http://api.example.com/ HTTP/1.1\r\nHost: api.example.com\r\n\r\n')).toBe('');
      expect([net.decisions, net.lookedUp]).toEqual([[], []]);
    });

    it('dials what it has looked up and judged, whatever the name stands for a moment later', async () => {
      const answers = [['93.184.216.34'], ['127.0.0.1'], ['93.184.216.34', '169.254.169.254']];
      await net.stop();
      net = await new TestNet().start({ ...mover, resolve: () => Promise.resolve(answers.shift() ?? []) });
      net.places.set('93.184.216.34 443', await net.listen(createServer((socket) => socket.end())));
      net.rules.hosts.push(rule('rebound.example', { raw: true }));
      const said = [];
      for (let i = 0; i < 3; i++) said.push((await net.tunnel('rebound.example:443')).answer.slice(9, 12));
      expect(said).toEqual(['200', '403', '403']);
      expect(net.dialled).toEqual(['93.184.216.34 443']);
    });

    it('is not led by a name in another script, nor by one that only looks listed', async () => {
      for (const name of [
        'аpi.example.com',
        'api。example.com',
        'api.example.com\u00ad',
        'api.example.com%2eevil.example',
        'xn--api-.example.com',
      ])
        expect([name, (await net.tunnel(`${Buffer.from(name).toString('latin1')}:443`)).answer.slice(9, 12)]).toEqual([
          name,
          expect.stringMatching(/^40[03]$/),
        ]);
      expect([net.lookedUp, net.dialled]).toEqual([[], []]);
    });

    it('is no way to reach a second listener on its own port', async () => {
      const socket = connect({ port: net.port, host: '127.0.0.1' });
      socket.write(`CONNECT 127.0.0.1:${String(net.port)} HTTP/1.1\r\nHost: 127.0.0.1:${String(net.port)}\r\n\r\n`);
      const [bytes] = (await once(socket, 'data')) as [Buffer];
      expect(String(bytes)).toMatch(/^HTTP\/1\.1 403 /);
      socket.destroy();
    });
  });
});
