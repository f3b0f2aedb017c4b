import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { once } from 'node:events';
import { createServer, connect, type AddressInfo, type Socket } from 'node:net';
import { connect as tlsConnect } from 'node:tls';
import { ascii, extension, handshake, hello, name, record, serverName, whole } from './client-hello.fixture.js';
import { MAX_HELLO, readClientHello } from './client-hello.js';

/** What a real client says first. */
async function saidBy(start: (port: number) => { destroy: () => void }): Promise<Buffer> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const client = start((server.address() as AddressInfo).port);
  const [socket] = (await once(server, 'connection')) as [Socket];
  const [bytes] = (await once(socket, 'data')) as [Buffer];
  client.destroy();
  socket.destroy();
  server.close();
  return bytes;
}

describe('the first bytes of a tunnel', () => {
  it('of a real TLS client name the server', async () => {
    const bytes = await saidBy((port) =>
      tlsConnect({ port, host: '127.0.0.1', servername: 'Registry.example.org' }).on('error', () => undefined),
    );
    expect(readClientHello(bytes)).toEqual({ name: 'Registry.example.org' });
  });

  it('of a real TLS client without a name have none', async () => {
    const bytes = await saidBy((port) => tlsConnect({ port, host: '127.0.0.1' }).on('error', () => undefined));
    expect(readClientHello(bytes)).toEqual({ fault: 'no-name' });
  });

  it.each([
    ['HTTP', ascii('GET / HTTP/1.1\r\n')],
    ['SSH', ascii('SSH-2.0-OpenSSH_9.2\r\n')],
    ['SSL 2', [0x80, 0x2e, 1, 3, 1]],
    ['an alert', [...record([2, 40], 21)]],
    ['a ServerHello', [...record(handshake(hello(), 2))]],
    ['another version', [22, 2, 0, 0, 5]],
  ])('that are %s are no TLS hello', (_what, bytes) => {
    expect(readClientHello(Uint8Array.from(bytes))).toEqual({ fault: 'not-tls' });
  });

  it('may be as large as a record can be', () => {
    const body = hello({
      extensions: [...serverName(name('a.example')), ...extension(21, Array<number>(16_000).fill(0))],
    });
    expect(readClientHello(whole(body))).toEqual({ name: 'a.example' });
    expect(whole(body).length).toBeLessThanOrEqual(MAX_HELLO);
  });

  it('say how many bytes are missing, and change their mind about nothing', () => {
    const bytes = whole(hello());
    for (let n = 0; n < bytes.length; n++) {
      const read = readClientHello(bytes.subarray(0, n));
      expect('needs' in read && read.needs > n && read.needs <= bytes.length).toBe(true);
    }
  });

  it('may be followed by other records, which are not looked at', () => {
    expect(readClientHello(Uint8Array.from([...whole(hello()), 23, 3, 3, 0, 1, 9]))).toEqual({
      name: 'api.example.com',
    });
  });

  it('must lie in one record', () => {
    const message = handshake(hello());
    const first = record(message.slice(0, 40));
    expect(readClientHello(Uint8Array.from([...first, ...record(message.slice(40))]))).toEqual({ fault: 'split' });
  });

  it.each<[string, Uint8Array, string]>([
    ['no extensions block', whole(hello().slice(0, -2 - serverName(name('api.example.com')).length)), 'no-name'],
    ['no extensions', whole(hello({ extensions: [] })), 'no-name'],
    ['an empty list of names', whole(hello({ extensions: serverName() })), 'no-name'],
    ['two names', whole(hello({ extensions: serverName(name('a.example'), name('b.example')) })), 'many-names'],
    ['a name of another type', whole(hello({ extensions: serverName(name('a.example', 1)) })), 'many-names'],
    ['an empty name', whole(hello({ extensions: serverName(name('')) })), 'malformed'],
    [
      'server_name twice',
      whole(hello({ extensions: [...serverName(name('a.example')), ...serverName(name('b.example'))] })),
      'malformed',
    ],
    [
      'another extension twice',
      whole(hello({ extensions: [...serverName(name('a.example')), ...extension(9, []), ...extension(9, [])] })),
      'malformed',
    ],
    ['no cipher suites', whole(hello({ ciphers: [] })), 'malformed'],
    ['half a cipher suite', whole(hello({ ciphers: [1, 2, 3] })), 'malformed'],
    ['no compression method', whole(hello({ compression: [] })), 'malformed'],
    ['a second message in the record', record([...handshake(hello()), 0]), 'malformed'],
    ['an empty record', Uint8Array.from([22, 3, 1, 0, 0]), 'malformed'],
    ['a record that is too long', Uint8Array.from([22, 3, 1, 0x40, 1]), 'malformed'],
    ['bytes after the extensions', whole([...hello(), 0]), 'malformed'],
    ['a name longer than its list', whole(hello({ extensions: extension(0, [0, 4, 0, 0, 9, 97]) })), 'malformed'],
  ])('with %s are refused', (_what, bytes, fault) => {
    expect(readClientHello(bytes)).toEqual({ fault });
  });

  it('hold a NUL or a blank as it stands: whoever compares sees it', () => {
    expect(readClientHello(whole(hello({ extensions: serverName(name('a.example\0.evil.example')) })))).toEqual({
      name: 'a.example\0.evil.example',
    });
  });
});

describe('whatever the bytes are', () => {
  it('reading neither throws nor asks for more than a record', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 400 }), fc.boolean(), (bytes, tls) => {
        const read = readClientHello(tls ? Uint8Array.from([22, 3, 1, ...bytes]) : bytes);
        if ('needs' in read) expect(read.needs).toBeLessThanOrEqual(MAX_HELLO);
      }),
      { numRuns: 2000 },
    );
  });

  it('one byte changed in a hello never makes it name something that is not in it', () => {
    const bytes = whole(
      hello({
        session: [1, 2, 3],
        extensions: [...extension(10, [0, 2, 0, 29]), ...serverName(name('api.example.com'))],
      }),
    );
    fc.assert(
      fc.property(fc.nat(bytes.length - 1), fc.nat(255), (at, value) => {
        const changed = Uint8Array.from(bytes);
        changed[at] = value;
        const read = readClientHello(changed);
        if ('name' in read) expect(Buffer.from(changed).toString('latin1')).toContain(read.name);
      }),
      { numRuns: 2000 },
    );
  });

  it('a hello cut short and then gone on with reads as the whole does', async () => {
    const bytes = await saidBy((port) => {
      const socket = connect(port, '127.0.0.1');
      return tlsConnect({ socket, servername: 'a.example' }).on('error', () => undefined);
    });
    fc.assert(
      fc.property(fc.nat(bytes.length), (at) => {
        expect('needs' in readClientHello(bytes.subarray(0, at)) || at === bytes.length).toBe(true);
      }),
    );
  });
});
