import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { once } from 'node:events';
import { createServer as createHttp, request, type IncomingMessage } from 'node:http';
import { createServer, type Socket } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { connect as tlsConnect, createServer as createTls, type TLSSocket } from 'node:tls';
import { PSK, rule, SOURCE, TestNet } from './egress.fixture.js';

let net: TestNet;
beforeEach(async () => {
  net = await new TestNet().start();
});
afterEach(() => net.stop());

const tlsEcho = () =>
  createTls({ ...PSK, pskCallback: () => Buffer.alloc(16, 7) }, (socket) => {
    socket.pipe(socket).on('error', () => undefined);
  });

const connectThrough = (authority: string, extra = ''): Promise<{ socket: Socket; answer: string }> =>
  net.ask(`CONNECT ${authority} HTTP/1.1\r\nHost: ${authority}\r\n${extra}\r\n`);

async function tlsThrough(socket: Socket, servername: string): Promise<TLSSocket> {
  const secure = tlsConnect({ socket, servername, ...PSK, checkServerIdentity: () => undefined });
  await once(secure, 'secureConnect');
  return secure;
}

describe('a tunnel', () => {
  it('carries TLS to the host that a rule names, and the decision stands before it', async () => {
    await net.host('api.example.com', 443, tlsEcho());
    net.rules.hosts.push(rule('api.example.com', { ports: { from: 443, to: 443 } }));
    const { socket, answer } = await connectThrough('API.example.com:443');
    expect(answer).toMatch(/^HTTP\/1\.1 200 /);
    expect(net.decisions).toEqual([
      {
        via: 'connect',
        host: 'api.example.com',
        port: 443,
        allowed: true,
        reason: null,
        source: SOURCE,
        addresses: ['93.184.216.34'],
      },
    ]);
    const secure = await tlsThrough(socket, 'api.example.com');
    secure.write('over and back');
    expect(String((await once(secure, 'data'))[0])).toBe('over and back');
    secure.destroy();
    expect(net.decisions).toHaveLength(1);
  });

  it('whose hello names another host is cut before a byte has gone out', async () => {
    const heard: Buffer[] = [];
    await net.host(
      'api.example.com',
      443,
      createServer((socket) => socket.on('data', (chunk) => heard.push(chunk))),
    );
    net.rules.hosts.push(rule('api.example.com'));
    const { socket } = await connectThrough('api.example.com:443');
    const secure = tlsConnect({ socket, servername: 'evil.example.net', ...PSK });
    await expect(once(secure, 'secureConnect')).rejects.toBeDefined();
    expect(net.decisions.at(-1)).toMatchObject({ allowed: false, reason: 'other-name', host: 'api.example.com' });
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
    const { socket } = await connectThrough('api.example.com:22');
    if (said !== '') socket.write(said);
    expect(await buffer(socket).catch(() => Buffer.alloc(0))).toHaveLength(0);
    expect(net.decisions.at(-1)).toMatchObject({ allowed: false, reason });
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
    const { socket } = await connectThrough('git.example.com:22');
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
    expect((await connectThrough('down.example.com:443')).answer).toMatch(/^HTTP\/1\.1 502 [^]*ECONNREFUSED/);
    expect((await connectThrough('gone.example.com:443')).answer).toMatch(/^HTTP\/1\.1 403 [^]*nd7-reason: no-address/);
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
    const { answer } = await connectThrough(authority);
    expect(answer).toMatch(/^HTTP\/1\.1 403 /);
    expect(answer).toContain(`nd7-reason: ${reason}\r\n`);
    expect(net.decisions).toMatchObject([{ allowed: false, reason, via: 'connect', addresses: [] }]);
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
    expect((await connectThrough('api.example.com:443')).answer).toMatch(/^HTTP\/1\.1 403 [^]*nd7-reason: address/);
    expect(net.decisions).toMatchObject([{ allowed: false, reason: 'address' }]);
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
    const { socket } = await connectThrough('db.corp.example:5432');
    expect(String(await buffer(socket))).toBe('welcome');
  });

  it('a port of loopback is reached where it is granted, by its own name or address', async () => {
    const port = await net.listen(createServer((socket) => socket.end('mine')));
    net.rules.loopback.push({ from: port, to: port, source: SOURCE });
    net.places.set(`127.0.0.1 ${String(port)}`, port);
    const { socket, answer } = await connectThrough(`localhost:${String(port)}`);
    expect(answer + String(await buffer(socket))).toMatch(/^HTTP\/1\.1 200 [^]*mine$/);
  });

  it('nothing goes out that could not be recorded', async () => {
    await net.host('api.example.com', 443, tlsEcho());
    net.rules.hosts.push(rule('api.example.com'));
    net.record = () => Promise.reject(new Error('the disk is full'));
    expect((await connectThrough('api.example.com:443')).answer).toMatch(/^HTTP\/1\.1 503 [^]*the disk is full/);
    expect(net.dialled).toEqual([]);
  });

  it('a grant that comes or goes counts from the next request on', async () => {
    await net.host('api.example.com', 443, tlsEcho());
    expect((await connectThrough('api.example.com:443')).answer).toMatch(/^HTTP\/1\.1 403 /);
    net.rules = { ...net.rules, hosts: [rule('api.example.com')] };
    expect((await connectThrough('api.example.com:443')).answer).toMatch(/^HTTP\/1\.1 200 /);
    net.rules = { ...net.rules, hosts: [] };
    expect((await connectThrough('api.example.com:443')).answer).toMatch(/^HTTP\/1\.1 403 /);
  });
});

describe('a plain HTTP request', () => {
  interface Seen {
    method: string;
    url: string;
    headers: IncomingMessage['rawHeaders'];
    body: string;
  }
  let seen: Seen[];
  beforeEach(async () => {
    seen = [];
    const server = createHttp((asked, answer) => {
      void buffer(asked).then((body) => {
        seen.push({ method: asked.method ?? '', url: asked.url ?? '', headers: asked.rawHeaders, body: String(body) });
        answer.writeHead(
          203,
          'Fine',
          [
            ['x-one', '1'],
            ['Connection', 'x-hop'],
            ['x-hop', '2'],
            ['set-cookie', 'a=1'],
            ['set-cookie', 'b=2'],
          ].flat(),
        );
        answer.end(`hello ${asked.url ?? ''}`);
      });
    });
    await net.host('plain.example.com', 80, server);
    net.rules.hosts.push(rule('plain.example.com', { ports: { from: 80, to: 80 } }));
  });

  it('goes through with its method, path, fields and body, and so does the answer', async () => {
    const sent = request({
      port: net.port,
      method: 'POST',
      path: 'http://plain.example.com/a?b=c',
      headers: { host: 'plain.example.com', 'x-mine': 'é', 'proxy-connection': 'keep-alive' },
    });
    sent.write('part one, ');
    sent.end('part two');
    const [answer] = (await once(sent, 'response')) as [IncomingMessage];
    expect([answer.statusCode, answer.statusMessage, String(await buffer(answer))]).toEqual([
      203,
      'Fine',
      'hello /a?b=c',
    ]);
    expect([answer.headers['x-one'], answer.headers['x-hop'], answer.headers['set-cookie']]).toEqual([
      '1',
      undefined,
      ['a=1', 'b=2'],
    ]);
    expect(seen).toMatchObject([{ method: 'POST', url: '/a?b=c', body: 'part one, part two' }]);
    expect(seen[0]?.headers.filter((_, i) => i % 2 === 0).map((name) => name.toLowerCase())).toEqual([
      'host',
      'x-mine',
      'transfer-encoding',
      'connection',
    ]);
    expect(net.decisions).toMatchObject([{ via: 'http', host: 'plain.example.com', port: 80, allowed: true }]);
  });

  it('is checked again on a connection that is kept', async () => {
    const said = ['plain.example.com', 'evil.example.net']
      .map((host) => `GET http://${host}/ HTTP/1.1\r\nHost: ${host}\r\n\r\n`)
      .join('');
    const heard = await net.say(said);
    expect(heard).toMatch(/^HTTP\/1\.1 203 [^]*HTTP\/1\.1 403 Forbidden/);
    expect(net.decisions).toHaveLength(2);
    expect(net.decisions.find(({ host }) => host === 'evil.example.net')).toMatchObject({
      allowed: false,
      reason: 'no-rule',
    });
  });

  it.each([
    ['another Host', 'GET http://plain.example.com/ HTTP/1.1\r\nHost: evil.example.net\r\n\r\n'],
    [
      'two Hosts',
      'GET http://plain.example.com/ HTTP/1.1\r\nHost: plain.example.com\r\nHost: evil.example.net\r\n\r\n',
    ],
    ['a Host with another port', 'GET http://plain.example.com/ HTTP/1.1\r\nHost: plain.example.com:81\r\n\r\n'],
    ['no Host', 'GET http://plain.example.com/ HTTP/1.0\r\n\r\n'],
    ['an https URL', 'GET https://plain.example.com/ HTTP/1.1\r\nHost: plain.example.com\r\n\r\n'],
    ['a path alone', 'GET / HTTP/1.1\r\nHost: plain.example.com\r\n\r\n'],
    [
      'a length and chunks',
      'POST http://plain.example.com/ HTTP/1.1\r\nHost: plain.example.com\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
    ],
    [
      'a folded field',
      'GET http://plain.example.com/ HTTP/1.1\r\nHost: plain.example.com\r\nX: a\r\n b\r\nX y: 1\r\n\r\n',
    ],
    ['a bare LF', 'GET http://plain.example.com/ HTTP/1.1\nHost: plain.example.com\nX y: 1\n\n'],
    ['a NUL in the host', 'GET http://plain.example.com\0.evil.net/ HTTP/1.1\r\nHost: plain.example.com\r\n\r\n'],
    [
      'an upgrade',
      'GET http://plain.example.com/ HTTP/1.1\r\nHost: plain.example.com\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n',
    ],
    ['no HTTP at all', 'hello there\r\n\r\n'],
  ])('with %s is refused and reaches nobody', async (_what, bytes) => {
    expect(await net.say(bytes)).toMatch(/^HTTP\/1\.1 40[03] /);
    expect(net.decisions).toMatchObject([{ allowed: false }]);
    expect([seen, net.dialled]).toEqual([[], []]);
  });

  it('with userinfo in its URL is refused', async () => {
    expect(await net.say('GET http://plain.example.com@evil.net/ HTTP/1.1\r\nHost: evil.net\r\n\r\n')).toMatch(
      /^HTTP\/1\.1 403 [^]*not-ldh/,
    );
  });
});

describe('SOCKS 5', () => {
  const named = (host: string, port: number, command = 1): Uint8Array =>
    Uint8Array.from([5, 1, 0, 5, command, 0, 3, host.length, ...Buffer.from(host, 'latin1'), port >> 8, port & 255]);

  it('opens a tunnel by name under the same rules', async () => {
    await net.host('api.example.com', 443, tlsEcho());
    net.rules.hosts.push(rule('api.example.com'));
    const socket = net.client();
    socket.write(named('api.example.com', 443));
    let heard = Buffer.alloc(0);
    while (heard.length < 12) heard = Buffer.concat([heard, (await once(socket, 'data'))[0] as Buffer]);
    expect([...heard]).toEqual([5, 0, 5, 0, 0, 1, 0, 0, 0, 0, 0, 0]);
    const secure = await tlsThrough(socket, 'api.example.com');
    secure.write('x');
    expect(String((await once(secure, 'data'))[0])).toBe('x');
    secure.destroy();
    expect(net.decisions).toMatchObject([{ via: 'socks5', host: 'api.example.com', port: 443, allowed: true }]);
  });

  it.each<[string, Uint8Array, number[], string | null]>([
    ['a name nobody listed', named('evil.example.net', 443), [5, 2], 'no-rule'],
    ['a name with a NUL', named('a.example\0.net', 443), [5, 2], 'not-ldh'],
    ['port 0', named('api.example.com', 0), [5, 2], 'bad-port'],
    ['loopback', Uint8Array.of(5, 1, 0, 5, 1, 0, 1, 127, 0, 0, 1, 0x15, 0x38), [5, 2], 'loopback'],
    [
      'loopback in IPv6 for IPv4',
      Uint8Array.of(5, 1, 0, 5, 1, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 127, 0, 0, 1, 1, 1),
      [5, 2],
      'loopback',
    ],
    ['BIND', named('api.example.com', 443, 2), [5, 7], 'bad-request'],
    ['UDP', named('api.example.com', 443, 3), [5, 7], 'bad-request'],
    ['an address of no kind', Uint8Array.of(5, 1, 0, 5, 1, 0, 9, 1, 2, 3), [5, 8], null],
  ])('refuses %s', async (_what, bytes, answer, reason) => {
    net.rules.hosts.push(rule('api.example.com'));
    const heard = Buffer.from(await net.say(bytes), 'latin1');
    expect([...heard.subarray(0, 4)]).toEqual([5, 0, ...answer]);
    expect(net.decisions.map((decision) => decision.reason)).toEqual(reason === null ? [] : [reason]);
    expect(net.dialled).toEqual([]);
  });

  it('speaks to nobody who offers no method it has', async () => {
    expect(Buffer.from(await net.say(Uint8Array.of(5, 1, 2)), 'latin1')).toEqual(Buffer.from([5, 0xff]));
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
      const { answer } = await connectThrough('git.example.com:22', extra);
      expect(answer).toMatch(/^HTTP\/1\.1 407 /);
      expect([net.decisions, net.dialled]).toEqual([[], []]);
    },
  );

  it('lets in who shows it, over HTTP and SOCKS', async () => {
    const { socket } = await connectThrough('git.example.com:22', basic('nd7:secret'));
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
    net = await new TestNet().start({ most: 8 });
    await net.host(
      'git.example.com',
      22,
      createServer((socket) => socket.pipe(socket)),
    );
    net.rules.hosts.push(rule('git.example.com', { raw: true }));
    const held = await connectThrough('git.example.com:22');
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
