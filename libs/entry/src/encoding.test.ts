import fc from 'fast-check';
import { fromBase64, fromHex, isHex, toBase64, toHex, utf8 } from './encoding.js';

test('hex and base64 are what Node writes, and read back', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 100 }), (bytes) => {
      expect(toHex(bytes)).toBe(Buffer.from(bytes).toString('hex'));
      expect(fromHex(toHex(bytes))).toEqual(bytes);
      expect(isHex(toHex(bytes), bytes.length)).toBe(true);
      expect(toBase64(bytes)).toBe(Buffer.from(bytes).toString('base64'));
      expect(fromBase64(toBase64(bytes))).toEqual(bytes);
    }),
  );
});

test.each(['a0c', 'AB', '0g', ' 00', '0x00', '00 ', '٠٠'])('%j is no hex', (text) => {
  expect(fromHex(text)).toBeUndefined();
  expect(isHex(text, Math.floor(text.length / 2))).toBe(false);
});

test('the length of hex is exact', () => {
  expect(isHex('00', 2)).toBe(false);
  expect(isHex('0000', 1)).toBe(false);
  expect(isHex('', 0)).toBe(true);
});

test.each([
  'A',
  'AA',
  'AAA',
  'AA=',
  'A===',
  '====',
  'AB==',
  'AAB=',
  'AA==AA==',
  'AA-_',
  'AAAA\n',
  ' AAA',
  'AA=A',
  '=AAA',
  'Aé==',
])('%j is no canonical base64', (text) => expect(fromBase64(text)).toBeUndefined());

test('one text per byte string: what is read is what would be written', () => {
  fc.assert(
    fc.property(fc.string({ unit: fc.constantFrom(...'AQgw/+9=z'), maxLength: 12 }), (text) => {
      const bytes = fromBase64(text);
      if (bytes !== undefined) expect(toBase64(bytes)).toBe(text);
    }),
    { numRuns: 3000 },
  );
});

test('text is UTF-8', () => expect(toHex(utf8('ä😀'))).toBe('c3a4f09f9880'));
