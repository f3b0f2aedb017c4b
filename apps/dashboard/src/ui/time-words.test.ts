import { duration, utcText } from './time-words.js';

it.each([
  [0, '0 ms'],
  [24, '24 ms'],
  [999, '999 ms'],
  [1000, '1 s'],
  [59_400, '59 s'],
  [33 * 60_000, '33 min'],
  [64 * 60_000, '1 h 4 min'],
  [2 * 3_600_000, '2 h'],
  [72 * 3_600_000, '3 days'],
  [-5000, '0 s'],
])('%i ms lasts %s', (ms, words) => {
  expect(duration(ms)).toBe(words);
});

it('writes UTC with what was cut', () => {
  expect(utcText(Date.parse('2026-11-29T20:04:12.512Z'))).toBe('2026-11-29 20:04:12.512 UTC');
});
