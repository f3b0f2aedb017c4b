import { blake3 as nobleBlake3 } from '@noble/hashes/blake3.js';
import fc from 'fast-check';
import { blake3, blake3Hex, blake3Stream, createKernel, MAX_CHUNK } from './index.js';

const bytes = (length: number): Uint8Array => Uint8Array.from({ length }, (_, i) => (i * 31 + (i >> 8) * 7) & 0xff);

describe('blake3 of one value', () => {
  it("is noble's, newlines and all, at every length that matters", () => {
    const around = [0, 64, 255, 256, 257, 1024, 2048, 4096, 65_536]
      .flatMap((n) => [n - 1, n, n + 1])
      .filter((n) => n >= 0);
    for (const length of around) expect(blake3(bytes(length))).toEqual(nobleBlake3(bytes(length)));
    expect(blake3(new Uint8Array(3000).fill(10))).toEqual(nobleBlake3(new Uint8Array(3000).fill(10)));
  });

  it("is noble's up to the kernel's limit and beyond it", () => {
    for (const length of [1_048_577, MAX_CHUNK - 1, MAX_CHUNK, MAX_CHUNK + 1]) {
      expect(blake3(bytes(length))).toEqual(nobleBlake3(bytes(length)));
    }
  });

  it('is the same of pieces, however they are cut', () => {
    fc.assert(
      fc.property(fc.array(fc.uint8Array({ maxLength: 3000 }), { maxLength: 8 }), (pieces) => {
        const stream = blake3Stream();
        for (const piece of pieces) stream.update(piece);
        expect(stream.hex()).toBe(blake3Hex(Buffer.concat(pieces)));
      }),
      { numRuns: 50 },
    );
  });

  it("does not disturb a kernel in use, and answers are the caller's to keep", () => {
    fc.assert(
      fc.property(
        fc.uint8Array({ minLength: 256, maxLength: 4000 }),
        fc.uint8Array({ minLength: 256, maxLength: 4000 }),
        (a, b) => {
          const kernel = createKernel();
          const scan = kernel.scan(new TextEncoder().encode('{"a":1}\n'));
          const first = blake3(a);
          const kept = first.slice();
          blake3(b);
          expect(first).toEqual(kept);
          expect(scan.count).toBe(1);
          expect(blake3Hex(a)).toHaveLength(64);
        },
      ),
      { numRuns: 20 },
    );
  });
});
