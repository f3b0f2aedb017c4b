import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { connect as tlsConnect } from 'node:tls';
import { MOVERS, PSK, rule, SOURCE, TestNet, tlsEcho, tlsThrough } from './egress.fixture.js';

describe.each(MOVERS)('where %s moves the bytes', (_name, mover) => {
  let net: TestNet;
  beforeEach(async () => {
    net = await new TestNet().start(mover);
  });
  afterEach(() => net.stop());

  describe('a tunnel', () => {
    it('carries TLS to the host that a rule names, and the decision stands before it', async () => {
      await net.host('api.example.com', 443, tlsEcho());
      net.rules.hosts.push(rule('api.example.com', { ports: { from: 443, to: 443 } }));
      const { socket, answer } = await net.tunnel('API.example.com:443');
      expect(answer).toMatch(/^HTTP\/1\.1 200 /);
      expect(net.decisions).toEqual([
        {
          via: 'connect',
          host: 'api.example.com',
          port: 443,
          verdict: 'allow',
          reason: null,
          source: SOURCE,
          addresses: ['93.184.216.34'],
          connection: 1,
        },
      ]);
      const secure = await tlsThrough(socket, 'api.example.com');
      secure.write('over and back');
      expect(String((await once(secure, 'data'))[0])).toBe('over and back');
      secure.destroy();
      expect(net.decisions).toHaveLength(1);
    });

    it.each([
      ['nothing is let through there any more', []],
      ['TLS alone is let through there', [rule('git.example.com')]],
    ])('that may carry anything ends when %s', async (_what, hosts) => {
      await net.host(
        'git.example.com',
        22,
        createServer((server) => server.pipe(server).on('error', () => undefined)),
      );
      net.rules.hosts.push(rule('git.example.com', { raw: true }));
      const { socket } = await net.tunnel('git.example.com:22');
      socket.on('error', () => undefined).write('plain');
      expect(String((await once(socket, 'data'))[0])).toBe('plain');
      expect(net.egress.recheck()).toBe(0);
      net.rules = { ...net.rules, hosts };
      const over = once(socket, 'close');
      expect(net.egress.recheck()).toBe(1);
      await over;
    });

    it('whose hello names another host is cut before a byte has gone out', async () => {
      const heard: Buffer[] = [];
      await net.host(
        'api.example.com',
        443,
        createServer((socket) => socket.on('data', (chunk) => heard.push(chunk))),
      );
      net.rules.hosts.push(rule('api.example.com'));
      const { socket } = await net.tunnel('api.example.com:443');
      const secure = tlsConnect({ socket, servername: 'evil.example.net', ...PSK });
      await expect(once(secure, 'secureConnect')).rejects.toBeDefined();
      expect(net.decisions.at(-1)).toMatchObject({ verdict: 'deny', reason: 'other-name', host: 'api.example.com' });
      expect(heard).toEqual([]);
    });

    it.each([
      ['another protocol', 'SSH-2.0-x\r\n', 'not-tls'],
      ['plain HTTP', 'GET / HTTP/1.1\r\nHost: api.example.com\r\n\r\n', 'not-tls'],
      ['nothing', '', 'no-hello'],
    ])('that carries %s is cut', async (_what, said, reason) => {
      await net.host(
        'api.example.com',
        22,
        createServer((socket) => socket.on('error', () => undefined)),
      );
      net.rules.hosts.push(rule('api.example.com'));
      const { socket } = await net.tunnel('api.example.com:22');
      if (said !== '') socket.write(said);
      expect(await buffer(socket).catch(() => Buffer.alloc(0))).toHaveLength(0);
      expect(net.decisions.at(-1)).toMatchObject({ verdict: 'deny', reason });
    });

    it('carries anything, a half-close included, where the rule says raw', async () => {
      await net.host(
        'git.example.com',
        22,
        createServer({ allowHalfOpen: true }, (socket) => {
          let heard = '';
          socket.on('data', (chunk: Buffer) => (heard += String(chunk))).on('end', () => socket.end(`heard ${heard}`));
        }),
      );
      net.rules.hosts.push(rule('git.example.com', { raw: true }));
      const { socket } = await net.tunnel('git.example.com:22');
      socket.end('SSH-2.0-x');
      expect(String(await buffer(socket))).toBe('heard SSH-2.0-x');
    });

    it('takes what the client said too early', async () => {
      await net.host(
        'git.example.com',
        22,
        createServer((socket) => socket.pipe(socket)),
      );
      net.rules.hosts.push(rule('git.example.com', { raw: true }));
      const { socket, answer } = await net.ask(
        'CONNECT git.example.com:22 HTTP/1.1\r\nHost: git.example.com:22\r\n\r\nearly',
      );
      expect(answer).toMatch(/^HTTP\/1\.1 200 /);
      expect(String((await once(socket, 'data'))[0])).toBe('early');
      socket.destroy();
    });

    it('is told that the other end refuses or has no address', async () => {
      net.names.set('down.example.com', ['93.184.216.34']);
      net.rules.hosts.push(rule('*.example.com'));
      expect((await net.tunnel('down.example.com:443')).answer).toMatch(/^HTTP\/1\.1 502 [^]*ECONNREFUSED/);
      expect((await net.tunnel('gone.example.com:443')).answer).toMatch(/^HTTP\/1\.1 403 [^]*nd7-reason: no-address/);
    });
  });

  describe('what no rule allows', () => {
    it.each([
      ['a name nobody listed', 'evil.example.net:443', 'no-rule'],
      ['a listed name at another port', 'api.example.com:22', 'no-rule'],
      ['the parent of a wildcard', 'example.org:443', 'no-rule'],
      ['a name that ends alike', 'evilexample.org:443', 'no-rule'],
      ['a name with a dot at the end', 'api.example.com.:443', 'trailing-dot'],
      ['a denied name below a wildcard', 'bad.example.org:443', 'denied'],
      ['an address nobody listed', '93.184.216.34:443', 'no-rule'],
      ['an address in hexadecimal', '0x5db8d822:443', 'odd-address'],
      ['an address in two parts', '127.1:443', 'odd-address'],
      ['an address in octal', '0177.0.0.1:443', 'odd-address'],
      ['loopback', '127.0.0.1:5432', 'loopback'],
      ['loopback by name', 'localhost:5432', 'loopback'],
      ['loopback in IPv6', '[::1]:5432', 'loopback'],
      ['loopback in IPv6 for IPv4', '[::ffff:127.0.0.1]:5432', 'loopback'],
      ['a name with a blank encoded', 'api.example.com%20:443', 'not-ldh'],
      ['userinfo', 'api.example.com@evil.net:443', 'not-ldh'],
      ['no port', 'api.example.com', 'bad-port'],
      ['port 0', 'api.example.com:0', 'bad-port'],
    ])('%s is refused, looked up nowhere, and recorded', async (_what, authority, reason) => {
      net.rules.hosts.push(
        rule('api.example.com', { ports: { from: 443, to: 443 } }),
        rule('*.example.org'),
        rule('bad.example.org', { allow: false }),
      );
      const { answer } = await net.tunnel(authority);
      expect(answer).toMatch(/^HTTP\/1\.1 403 /);
      expect(answer).toContain(`nd7-reason: ${reason}\r\n`);
      expect(net.decisions).toMatchObject([{ verdict: 'deny', reason, via: 'connect', addresses: [] }]);
      expect([net.lookedUp, net.dialled]).toEqual([[], []]);
    });

    it.each([
      ['loopback', ['127.0.0.1']],
      ['loopback beside a public address', ['93.184.216.34', '127.0.0.53']],
      ['the cloud’s metadata', ['169.254.169.254']],
      ['link-local IPv6', ['fe80::1%eth0']],
      ['IPv4 in IPv6', ['::ffff:169.254.169.254']],
      ['a private address', ['10.0.0.5']],
      ['nothing of sense', ['not an address']],
    ])('a listed name that stands for %s is not dialled', async (_what, addresses) => {
      net.names.set('api.example.com', addresses);
      net.rules.hosts.push(rule('api.example.com'));
      expect((await net.tunnel('api.example.com:443')).answer).toMatch(/^HTTP\/1\.1 403 [^]*nd7-reason: address/);
      expect(net.decisions).toMatchObject([{ verdict: 'deny', reason: 'address' }]);
      expect(net.dialled).toEqual([]);
    });

    it('a private address is dialled where the rule lets the name stand for one', async () => {
      await net.host(
        'db.corp.example',
        5432,
        createServer((socket) => socket.end('welcome')),
        '10.0.0.5',
      );
      net.rules.hosts.push(rule('db.corp.example', { raw: true, privateAddresses: true }));
      const { socket } = await net.tunnel('db.corp.example:5432');
      expect(String(await buffer(socket))).toBe('welcome');
    });

    it('a port of loopback is reached where it is granted, by its own name or address', async () => {
      const port = await net.listen(createServer((socket) => socket.end('mine')));
      net.rules.loopback.push({ from: port, to: port, source: SOURCE });
      net.places.set(`127.0.0.1 ${String(port)}`, port);
      const { socket, answer } = await net.tunnel(`localhost:${String(port)}`);
      expect(answer + String(await buffer(socket))).toMatch(/^HTTP\/1\.1 200 [^]*mine$/);
    });

    it('nothing goes out that could not be recorded', async () => {
      await net.host('api.example.com', 443, tlsEcho());
      net.rules.hosts.push(rule('api.example.com'));
      net.record = () => Promise.reject(new Error('the disk is full'));
      expect((await net.tunnel('api.example.com:443')).answer).toMatch(/^HTTP\/1\.1 503 [^]*the disk is full/);
      expect(net.dialled).toEqual([]);
    });

    it('a grant that comes or goes counts from the next request on', async () => {
      await net.host('api.example.com', 443, tlsEcho());
      expect((await net.tunnel('api.example.com:443')).answer).toMatch(/^HTTP\/1\.1 403 /);
      net.rules = { ...net.rules, hosts: [rule('api.example.com')] };
      expect((await net.tunnel('api.example.com:443')).answer).toMatch(/^HTTP\/1\.1 200 /);
      net.rules = { ...net.rules, hosts: [] };
      expect((await net.tunnel('api.example.com:443')).answer).toMatch(/^HTTP\/1\.1 403 /);
    });
  });

  describe('a proxy with a token', () => {
    beforeEach(async () => {
      await net.stop();
      net = await new TestNet().start({ token: 'secret' });
      net.rules.hosts.push(rule('git.example.com', { raw: true }));
      await net.host(
        'git.example.com',
        22,
        createServer((socket) => socket.end('in')),
      );
    });
    const basic = (text: string): string => `Proxy-Authorization: Basic ${Buffer.from(text).toString('base64')}\r\n`;

    it.each(['', basic('nd7:wrong'), basic('other:secret'), 'Proxy-Authorization: Bearer secret\r\n'])(
      'does nothing for %j',
      async (extra) => {
        const { answer } = await net.tunnel('git.example.com:22', extra);
        expect(answer).toMatch(/^HTTP\/1\.1 407 /);
        expect([net.decisions, net.dialled]).toEqual([[], []]);
      },
    );

    it('lets in who shows it, over HTTP and SOCKS', async () => {
      const { socket } = await net.tunnel('git.example.com:22', basic('nd7:secret'));
      expect(String(await buffer(socket))).toBe('in');
      const greeting = [5, 2, 0, 2, 1, 3, ...Buffer.from('nd7'), 6, ...Buffer.from('secret')];
      const wanted = [5, 1, 0, 3, 15, ...Buffer.from('git.example.com'), 0, 22];
      expect(await net.say(Uint8Array.from([...greeting, ...wanted]))).toMatch(/^\x05\x02\x01\x00\x05\x00[^]*in$/);
      expect(await net.say(Uint8Array.of(5, 1, 0))).toBe('\x05\xff');
    });
  });

  describe('a crowd', () => {
    it('beyond the most that is taken at once is closed, and the rest goes on', async () => {
      await net.stop();
      net = await new TestNet().start({ ...mover, most: 8 });
      await net.host(
        'git.example.com',
        22,
        createServer((socket) => socket.pipe(socket)),
      );
      net.rules.hosts.push(rule('git.example.com', { raw: true }));
      const held = await net.tunnel('git.example.com:22');
      const crowd = Array.from({ length: 300 }, () =>
        net
          .client()
          .on('error', () => undefined)
          .resume(),
      );
      await Promise.all(crowd.slice(50).map((socket) => once(socket, 'close')));
      held.socket.write('still here');
      expect(String((await once(held.socket, 'data'))[0])).toBe('still here');
      for (const socket of crowd) socket.destroy();
      held.socket.destroy();
    });
  });

  describe('a granted port of this machine’s own loopback', () => {
    it('is reached by a listener inside that stands for it, whatever is spoken, and each connection is a decision', async () => {
      let port = 0;
      await net.stop();
      net = new TestNet();
      await net.start(mover, async () => {
        const listener = createServer({ allowHalfOpen: true });
        port = await net.listen(listener);
        net.egress.serveLoopback(listener, 5432);
      });
      net.places.set('127.0.0.1 5432', await net.listen(createServer((socket) => socket.pipe(socket))));
      net.rules.loopback.push({ from: 5432, to: 5432, source: SOURCE });
      expect(await net.say('no TLS at all', port)).toBe('no TLS at all');
      expect(net.decisions).toMatchObject([
        { via: 'loopback', host: 'localhost', port: 5432, verdict: 'allow', source: SOURCE },
      ]);
      // Grants come and go: each connection is asked anew.
      net.rules.loopback.pop();
      expect(await net.say('again', port)).toBe('');
      expect(net.decisions.at(-1)).toMatchObject({ verdict: 'deny', reason: 'loopback' });
    });
  });
});
