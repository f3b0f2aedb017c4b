// What goes out of a tunnel, whoever moves its bytes: the relay reads plain hellos itself, and must never find one right that the proxy would not.
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { ascii, extension, handshake, hello, name, record, serverName, whole } from './client-hello.fixture.js';
import { readClientHello } from './client-hello.js';
import { MOVERS, rule, TestNet } from './egress.fixture.js';

const HOST = 'api.example.com';
const full = hello({
  session: Array<number>(32).fill(1),
  ciphers: [0x13, 1, 0x13, 2],
  extensions: [...extension(10, [0, 2, 0, 29]), ...serverName(name(HOST)), ...extension(43, [2, 3, 4])],
});
const good = whole(full);

describe.each(MOVERS)('where %s moves the bytes, there go out of a tunnel', (_name, mover) => {
  let net: TestNet;
  let heard: Buffer[];
  let open: Promise<unknown>[];
  beforeEach(async () => {
    heard = [];
    open = [];
    net = await new TestNet().start({ ...mover, patienceMs: 5000 });
    const server = createServer((socket) => {
      open.push(once(socket, 'close').catch(() => undefined));
      socket
        .on('data', (bytes: Buffer) => heard.push(bytes))
        .on('error', () => undefined)
        .on('end', () => socket.end());
    });
    await net.host(HOST, 443, server);
    net.rules.hosts.push(rule(HOST));
  });
  afterEach(() => net.stop());

  /** What a server hears of a tunnel that says so much and no more. */
  async function passed(bytes: Uint8Array): Promise<Buffer> {
    heard = [];
    const { socket } = await net.tunnel(`${HOST}:443`);
    const over = once(
      socket.on('error', () => undefined),
      'close',
    ).catch(() => undefined);
    socket.resume().end(bytes);
    await over;
    await Promise.all(open.splice(0));
    return Buffer.concat(heard);
  }

  it.each<[string, Uint8Array]>([
    ['for the host', good],
    ['for the host, and what follows it', Uint8Array.from([...good, 23, 3, 3, 0, 1, 9])],
    ['that spells the host otherwise', whole(hello({ extensions: serverName(name('API.Example.com')) }))],
    [
      'of more extensions than the relay reads',
      whole(
        hello({
          extensions: [
            ...serverName(name(HOST)),
            ...Array.from({ length: 80 }, (_, i) => extension(100 + i, [])).flat(),
          ],
        }),
      ),
    ],
  ])('all bytes of a hello %s', async (_what, bytes) => {
    expect(await passed(bytes)).toEqual(Buffer.from(bytes));
  });

  it.each<[string, Uint8Array]>([
    ['for another host', whole(hello({ extensions: serverName(name('api.example.org')) }))],
    [
      'for a host of which this is the beginning',
      whole(hello({ extensions: serverName(name(`${HOST}.evil.example`)) })),
    ],
    ['for the beginning of the host', whole(hello({ extensions: serverName(name('api.example.co')) }))],
    ['for the host and another', whole(hello({ extensions: serverName(name(HOST), name('b.example')) }))],
    ['with the name twice', whole(hello({ extensions: [...serverName(name(HOST)), ...serverName(name(HOST))] }))],
    [
      'with an extension twice',
      whole(hello({ extensions: [...serverName(name(HOST)), ...extension(9, []), ...extension(9, [])] })),
    ],
    ['with a name of another type', whole(hello({ extensions: serverName(name(HOST, 1)) }))],
    ['with bytes after the name', whole(hello({ extensions: extension(0, [0, 18, ...name(HOST), 0]) }))],
    ['with bytes after the extensions', whole([...hello({ extensions: serverName(name(HOST)) }), 0])],
    ['with half a cipher suite', whole(hello({ ciphers: [1, 2, 3] }))],
    ['without a compression method', whole(hello({ compression: [] }))],
    ['with another message in its record', record([...handshake(full), 0])],
    [
      'split over two records',
      Uint8Array.from([...record(handshake(full).slice(0, 60)), ...record(handshake(full).slice(60))]),
    ],
    ['that is cut short', good.subarray(0, good.length - 1)],
    ['that is another message', record(handshake(full, 2))],
    ['in another kind of record', record(handshake(full), 23)],
    ['that is none', Uint8Array.from(ascii(`GET / HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`))],
  ])('no bytes of a hello %s', async (_what, bytes) => {
    expect(await passed(bytes)).toEqual(Buffer.alloc(0));
  });

  it('those alone that the proxy itself would let out, however a hello is changed', async () => {
    const at = fc.nat(good.length - 1);
    const change = fc.oneof(
      fc.tuple(at, fc.nat(255)).map(
        ([i, value]) =>
          (bytes: Uint8Array) =>
            bytes.with(i % bytes.length, value),
      ),
      at.map((i) => (bytes: Uint8Array) => Uint8Array.from([...bytes.subarray(0, i), ...bytes.subarray(i + 1)])),
      fc.tuple(at, fc.nat(255)).map(
        ([i, value]) =>
          (bytes: Uint8Array) =>
            Uint8Array.from([...bytes.subarray(0, i), value, ...bytes.subarray(i)]),
      ),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(change, { minLength: 1, maxLength: 3 }), async (changes) => {
        const bytes = changes.reduce<Uint8Array>((changed, one) => one(changed), good);
        const read = readClientHello(bytes);
        const isRight = 'name' in read && read.name.toLowerCase() === HOST;
        expect(await passed(bytes)).toEqual(isRight ? Buffer.from(bytes) : Buffer.alloc(0));
      }),
      { numRuns: 300 },
    );
  });
});
