import fc from 'fast-check';
import { maskRegex, noneOf } from './names.js';

describe('names as expressions', () => {
  it('leave out exactly the names that they are to leave out', () => {
    const letters = fc.string({ unit: fc.constantFrom('a', 'b', '.', '-', '_', '\n'), minLength: 1, maxLength: 4 });
    fc.assert(
      fc.property(
        fc.array(
          letters.filter((one) => !one.includes('\n')),
          { maxLength: 4 },
        ),
        letters,
        (words, word) => {
          expect(new RegExp(`^${noneOf(words)}$`).test(word)).toBe(!words.includes(word));
        },
      ),
    );
    const masked = (text: string): boolean =>
      new RegExp(`^${maskRegex('**/.env*', ['**/*.example', '**/*.sample'], ['node_modules'])}`).test(text);
    for (const text of [
      '/.env',
      '/.envrc',
      '/a/.env.local',
      '/.env.example.x',
      '/.env.d/x.example',
      '/.env.sampl',
      '/.env\nx',
      '/node_modules_/.env',
      '/.env/node_modules/x',
    ])
      expect([text, masked(text)]).toEqual([text, true]);
    for (const text of [
      '/.env.example',
      '/a/.env.sample',
      '/env',
      '/node_modules/.env',
      '/a/node_modules/b/.env',
      '/x.env',
    ])
      expect([text, masked(text)]).toEqual([text, false]);
  });
});
