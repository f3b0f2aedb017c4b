import fc from 'fast-check';
import { fit, safeLine, safeText } from './safe.js';

test.each([
  ['plain text, é, 漢字, 😀', 'plain text, é, 漢字, 😀'],
  ['\u001b[31mred\u001b[0m', '⟦ESC⟧[31mred⟦ESC⟧[0m'],
  ['\u001b]0;title\u0007', '⟦ESC⟧]0;title⟦BEL⟧'],
  ['\u009b2J', '⟦U+009B⟧2J'],
  ['rm -rf /\rls       ', 'rm -rf /⟦CR⟧ls       '],
  ['a\nb\tc\0', 'a⟦LF⟧b⟦TAB⟧c⟦NUL⟧'],
  ['\u202edlrow\u202c \u2066x\u2069', '⟦U+202E⟧dlrow⟦U+202C⟧ ⟦U+2066⟧x⟦U+2069⟧'],
  ['pay\u200bload\ufeff', 'pay⟦U+200B⟧load⟦BOM⟧'],
  ['\u{e0041}\u{e007f}', '⟦U+E0041⟧⟦U+E007F⟧'],
  ['x\ud800y', 'x⟦U+D800⟧y'],
  ['\u3164\u2800', '⟦U+3164⟧⟦U+2800⟧'],
  [`z${'\u0301'.repeat(50)}`, `z${'\u0301'.repeat(4)}⟦46 marks⟧`],
])('%j', (text, shown) => {
  expect(safeLine(text)).toBe(shown);
});

test('several lines keep their breaks and tabs, nothing else', () => {
  expect(safeText('a\n\tb\r\u001b')).toBe('a\n\tb⟦CR⟧⟦ESC⟧');
});

test('nothing that steers a terminal comes through, whatever the text', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), (text) => {
      expect(safeLine(text)).not.toMatch(/[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/);

      expect(safeText(text)).not.toMatch(
        /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/,
      );
    }),
    { numRuns: 2000 },
  );
});

test('fit cuts by columns: wide characters count two, marks none', () => {
  expect(fit('abcdef', 6)).toBe('abcdef');
  expect(fit('abcdef', 5)).toBe('abcd…');
  expect(fit('漢字漢字', 8)).toBe('漢字漢字');
  expect(fit('漢字漢字', 7)).toBe('漢字漢…');
  expect(fit('漢字漢字', 6)).toBe('漢字…');
  expect(fit('e\u0301e\u0301e\u0301', 3)).toBe('e\u0301e\u0301e\u0301');
  expect(fit('', 5)).toBe('');
});
