import { describe, expect, it } from '@jest/globals';
import zstd from '@mongodb-js/zstd';
import fc from 'fast-check';
import { compress, entriesOf, frameContentSize, inflate } from './frame.js';

/** A frame of run-length blocks: each costs four bytes and stands for up to 128 KiB. */
function bomb(declared: number, blocks: number): Buffer {
  const header = Buffer.from([0x28, 0xb5, 0x2f, 0xfd, 0xa0, 0, 0, 0, 0]);
  header.writeUInt32LE(declared, 5);
  const body = Buffer.alloc(blocks * 4, 0x41);
  for (let i = 0; i < blocks; i += 1)
    body.writeUIntLE((i === blocks - 1 ? 1 : 0) | (1 << 1) | (131_072 << 3), i * 4, 3);
  return Buffer.concat([header, body]);
}

const refused = (frame: Uint8Array): string => (frameContentSize(frame) as { refused: string }).refused;

describe('a zstd frame is looked at before it is inflated', () => {
  it.each([0, 1, 255, 256, 257, 65_791, 65_792, 1_000_000])(
    'one of %i bytes is taken and comes out whole',
    async (size) => {
      const plain = Buffer.alloc(size, 'The quick brown fox. ');
      const frame = await compress(plain);
      expect(frameContentSize(frame)).toBe(size);
      expect((await inflate(frame, size)).equals(plain)).toBe(true);
    },
  );

  it('that does not say its size is refused: so do encoders that stream', async () => {
    expect(refused(await zstd.compress(Buffer.alloc(1000), 3))).toMatch(/content size/);
  });

  it.each([
    [
      'a second frame',
      async () => Buffer.concat([await compress(Buffer.from('a')), await compress(Buffer.from('b'))]),
      /follows/,
    ],
    ['trailing bytes', async () => Buffer.concat([await compress(Buffer.from('a')), Buffer.from([0])]), /follows/],
    [
      'a skippable frame after it',
      async () => Buffer.concat([await compress(Buffer.from('a')), Buffer.from([0x50, 0x2a, 0x4d, 0x18, 0, 0, 0, 0])]),
      /follows/,
    ],
    ['a dictionary', async () => patched(await compress(Buffer.from('abc')), (b) => (b[4]! |= 0x01)), /dictionary/],
    ['a reserved bit', async () => patched(await compress(Buffer.from('abc')), (b) => (b[4]! |= 0x08)), /reserved/],
    ['a window of 16 MiB', async () => patched(await compress(Buffer.from('abc')), (b) => (b[5] = 14 << 3)), /window/],
    ['a declared size over 8 MiB', async () => bomb(8 * 1024 * 1024 + 1, 1), /declares/],
    ['no magic', async () => Buffer.from('hello world'), /begin/],
    ['nothing', async () => Buffer.alloc(0), /begin/],
    ['half a frame', async () => (await compress(Buffer.alloc(5000, 'abcdefg'))).subarray(0, 14), /ends within/],
  ])('with %s is refused', async (_what, make, line) => {
    expect(refused(await make())).toMatch(line);
  });

  it.each([
    [100, 4],
    [131_072, 20_000],
    [8 * 1024 * 1024, 100_000],
  ])('a bomb that declares %i bytes and holds %i blocks stops at what it declares', async (declared, blocks) => {
    const before = process.memoryUsage().rss;
    await expect(entriesOf(bomb(declared, blocks), 'zstd')).rejects.toMatchObject({ code: 'bad-frame' });
    expect(process.memoryUsage().rss - before).toBeLessThan(100 * 1024 * 1024);
  });

  it('never throws, whatever it is given', () => {
    const magic = [0x28, 0xb5, 0x2f, 0xfd];
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 64 }), fc.boolean(), (bytes, isFrame) => {
        const found = frameContentSize(isFrame ? Uint8Array.from([...magic, ...bytes]) : bytes);
        return typeof found === 'number' ? found >= 0 : found.refused.length > 0;
      }),
      { numRuns: 2000 },
    );
  });

  it('whatever is cut off or added, is refused or comes out as it was', async () => {
    const plain = Buffer.from('{"v":1}\n'.repeat(40));
    const frame = await compress(plain);
    for (let length = 0; length < frame.length; length += 1) {
      const cut = frame.subarray(0, length);
      expect(typeof frameContentSize(cut)).toBe('object');
    }
  });
});

function patched(frame: Buffer, change: (bytes: Buffer) => void): Buffer {
  change(frame);
  return frame;
}
