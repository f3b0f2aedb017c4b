import { compress, decompress } from '@mongodb-js/zstd';
import fc from 'fast-check';
import { declareContentSize } from './frame.js';

describe('declareContentSize', () => {
  it('leaves the content as it was, for every size', async () => {
    await fc.assert(
      fc.asyncProperty(fc.uint8Array({ maxLength: 5000 }), fc.integer({ min: 1, max: 9 }), async (content, level) => {
        const frame = await compress(Buffer.from(content), level);
        const declared = declareContentSize(frame, content.length);
        expect(declared).toBeDefined();
        expect(new Uint8Array(await decompress(Buffer.from(declared ?? [])))).toEqual(content);
        expect(declareContentSize(declared ?? frame, content.length)).toBe(declared);
      }),
      { numRuns: 60 },
    );
  });

  it('knows what is no frame', () => {
    fc.assert(fc.property(fc.uint8Array({ maxLength: 40 }), (bytes) => void declareContentSize(bytes, 1)));
    expect(declareContentSize(Uint8Array.of(0x28, 0xb5, 0x2f), 1)).toBeUndefined();
    expect(declareContentSize(Uint8Array.of(0x28, 0xb5, 0x2f, 0xfd, 0x01, 0x58), 1)).toBeUndefined();
  });
});
