import { Duplex } from 'node:stream';
import fc from 'fast-check';
import { Broker, encodeOrder, type CommandAnswer, type CommandFront } from './broker.js';

const u32 = (...values: number[]): Buffer => {
  const bytes = Buffer.alloc(4 * values.length);
  values.forEach((value, i) => bytes.writeUInt32LE(value, 4 * i));
  return bytes;
};
const frame = (kind: number, id: number, body: Buffer = Buffer.alloc(0)): Buffer =>
  Buffer.concat([u32(8 + body.length, kind, id), body]);

/** A front that keeps what it is told, and the channel to it. */
function front(answer: CommandAnswer | Error = { verdict: 'direct' }) {
  const told: unknown[][] = [];
  const written: Buffer[] = [];
  const channel = new Duplex({
    read: () => undefined,
    write: (bytes: Buffer, _encoding, done) => {
      written.push(bytes);
      done();
    },
  });
  const hear =
    (name: string) =>
    (...values: unknown[]): void =>
      void told.push([name, ...values]);
  const heard: CommandFront = {
    asked: (command) => {
      told.push(['asked', command]);
      return answer instanceof Error ? Promise.reject(answer) : Promise.resolve(answer);
    },
    told: hear('told'),
    began: hear('began'),
    ended: hear('ended'),
    gone: hear('gone'),
    handedBack: hear('handedBack'),
    refused: hear('refused'),
    lost: hear('lost'),
  };
  new Broker(channel, heard);
  return { told, written, channel };
}
const settled = (): Promise<void> => new Promise((done) => setImmediate(done));

it('reads what the broker tells, in pieces of any size', async () => {
  const usage = Buffer.alloc(56);
  usage.writeBigUInt64LE(123_456n, 0);
  const all = Buffer.concat([
    frame(1, 7, Buffer.concat([u32(100, 0, 8 | 5), Buffer.from('echo \xff', 'latin1')])),
    frame(2, 7, u32(11, 12)),
    frame(3, 7, Buffer.concat([u32(3 << 8, 0), usage])),
    frame(3, 8, Buffer.concat([u32(15, 1), usage])),
    frame(4, 7),
    frame(5, 9),
    frame(6, 2, u32(5, 6)),
    frame(7, 0),
  ]);
  for (const size of [1, 5, all.length]) {
    const { told, channel } = front();
    for (let at = 0; at < all.length; at += size) channel.push(all.subarray(at, at + size));
    await settled();
    await settled();
    expect(told).toMatchObject([
      ['asked', { id: 7, pid: 100, login: true, terminal: false, streams: [true, false, true] }],
      ['began', 7, 11, 12],
      ['ended', 7, { code: 3, signal: null, isLost: false, userUs: 123_456 }],
      ['ended', 8, { code: null, signal: 15, isLost: true }],
      ['gone', 7],
      ['handedBack', 9],
      ['refused', 5, 6, 'too many'],
      ['lost', 'zygote'],
    ]);
  }
});

it('says of an order that no frame holds that it runs directly', async () => {
  const order = {
    program: '/bin/sh',
    argv: ['sh'],
    environment: Array.from({ length: 5 }, () => Buffer.alloc(1 << 20, 'x')),
    folder: 2,
    umask: 0o22,
    ignored: 0n,
  };
  const { channel, written } = front({ verdict: 'run', order });
  channel.push(frame(1, 7, Buffer.concat([u32(100, 0, 0), Buffer.from('true')])));
  await settled();
  await settled();
  expect(Buffer.concat(written)).toEqual(frame(2, 7));
});

it('answers with an order, with a refusal, and with no more than the floor where nothing could be decided', async () => {
  const order = {
    program: '/bin/sh',
    argv: ['sh', '-c', Buffer.from([0x65, 0xff])],
    environment: [Buffer.from('A=1')],
    folder: 5,
    umask: 0o22,
    ignored: 2n,
  };
  const cases: [CommandAnswer | Error, number, Buffer][] = [
    [{ verdict: 'run', order }, 1, encodeOrder(order)],
    [{ verdict: 'direct' }, 2, Buffer.alloc(0)],
    [{ verdict: 'refuse', reason: 'no' }, 3, Buffer.from('no')],
    [new Error('anything'), 2, Buffer.alloc(0)],
  ];
  for (const [answer, kind, body] of cases) {
    const { written, channel } = front(answer);
    channel.push(frame(1, 3, Buffer.concat([u32(1, 0, 7), Buffer.from('x')])));
    await settled();
    await settled();
    expect(Buffer.concat(written)).toEqual(frame(kind, 3, body));
  }
  expect(() => encodeOrder({ ...order, argv: ['a\0b'] })).toThrow(RangeError);
});

it('a frame that is wrong closes the channel, and commands then run without it', async () => {
  for (const bad of [
    frame(9, 1),
    u32(3, 1, 1),
    u32(1 << 30, 1, 1),
    frame(1, 1, u32(1, 1)),
    frame(2, 1),
    frame(3, 1, u32(1)),
  ]) {
    const { told, channel } = front();
    channel.push(bad);
    await settled();
    await settled();
    expect([channel.destroyed, told]).toEqual([true, [['lost', 'broker']]]);
  }
});

it('stands any bytes', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.uint8Array({ maxLength: 60 }), { maxLength: 6 }), async (parts) => {
      const { channel } = front();
      for (const part of parts) if (part.length > 0 && !channel.destroyed) channel.push(Buffer.from(part));
      await settled();
    }),
  );
});
