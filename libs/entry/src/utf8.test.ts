import fc from 'fast-check';
import { utf8Fault } from './utf8.js';

function decodes(bytes: Uint8Array): boolean {
  try {
    new TextDecoder('utf-8', { fatal: true }).decode(bytes);
    return true;
  } catch {
    return false;
  }
}

test('every sequence of up to three bytes that begins with a lead, as the platform reads it', () => {
  for (let a = 0xc0; a < 0x100; a++) {
    for (let b = 0x70; b < 0xd0; b++) {
      for (const rest of [[], [0x80], [0xbf], [0x7f], [0xc0], [0x80, 0x80], [0xbf, 0xbf], [0x80, 0x41]]) {
        const bytes = Uint8Array.of(0x61, a, b, ...rest);
        expect(utf8Fault(bytes) < 0).toBe(decodes(bytes));
      }
    }
  }
});

test('random bytes, mostly near the edges', () => {
  const edge = fc.constantFrom(0x00, 0x41, 0x7f, 0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf, 0xc1, 0xc2, 0xdf, 0xe0, 0xed, 0xef, 0xf0, 0xf4, 0xf5); // prettier-ignore
  fc.assert(
    fc.property(fc.array(edge, { maxLength: 12 }), (list) => {
      const bytes = Uint8Array.from(list);
      expect(utf8Fault(bytes) < 0).toBe(decodes(bytes));
    }),
    { numRuns: 5000 },
  );
});

test('says where', () => {
  expect(utf8Fault(Uint8Array.of(0x61, 0xed, 0xa0, 0x80))).toBe(1);
  expect(utf8Fault(Uint8Array.of(0x61, 0x62, 0xe2, 0x82))).toBe(2);
});
