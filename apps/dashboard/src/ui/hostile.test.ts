import fc from 'fast-check';
import { type Run, takeApart } from './hostile.js';

const show = (text: string, lines = false) =>
  takeApart(text, { lines })
    .map((run) => ('text' in run ? run.text : `[${run.box}]`))
    .join('');

describe('text of unknown origin', () => {
  it.each([
    ['plain ASCII, Umlaute äöü, 漢字, العربية', 'plain ASCII, Umlaute äöü, 漢字, العربية'],
    ['invoice\u202efdp.exe\u202c', 'invoice[U+202E]fdp.exe[U+202C]'],
    ['\u200badmin', '[U+200B]admin'],
    ['a\u0000b\u0007c\u007f', 'a[0x00]b[0x07]c[0x7F]'],
    ['\u001b[31mFAIL\u001b[0m', '[ESC[31m]FAIL[ESC[0m]'],
    ['\u001b]8;;https://x.example\u0007click\u001b]8;;\u001b\\', '[ESC]8;;https://x.example]click[ESC]8;;]'],
    ['\u001b]0;root@prod', '[ESC]0;root@prod]'],
    ['end\u001b', 'end[ESC]'],
    ['lone \ud800 and \udc00', 'lone [\\ud800] and [\\udc00]'],
    ['soft\u00adhyphen \ufeff', 'soft[U+00AD]hyphen [U+FEFF]'],
    ['tags \u{e0041}\u{e0042}', 'tags [U+E0041][U+E0042]'],
    ['line\u2028para\u2029', 'line[U+2028]para[U+2029]'],
    ['filler \u3164 \u115f', 'filler [U+3164] [U+115F]'],
    ['selector a\ufe01', 'selector a[U+FE01]'],
  ])('%j', (text, shown) => {
    expect(show(text)).toBe(shown);
  });

  it('leaves an emoji of several characters whole, and boxes a joiner that joins nothing', () => {
    expect(show('\u{1f468}\u200d\u{1f469}\u200d\u{1f467} \u2764\ufe0f')).toBe(
      '\u{1f468}\u200d\u{1f469}\u200d\u{1f467} \u2764\ufe0f',
    );
    expect(show('a\u200db')).toBe('a[U+200D]b');
  });

  it('keeps line feeds and tabs where lines are wanted, and no carriage return', () => {
    expect(show('a\n\tb\r\n', true)).toBe('a\n\tb[0x0D]\n');
    expect(show('a\nb')).toBe('a[0x0A]b');
  });

  it('loses nothing: what is boxed and what is text make up the whole', () => {
    const real = (run: Run) => ('text' in run ? run.text : run.real);
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), fc.boolean(), (text, lines) => {
        expect(takeApart(text, { lines }).map(real).join('')).toBe(text);
      }),
    );
  });

  it('shows no control, bidi or zero-width character as text, whatever it is given', () => {
    const unseen = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200b\u200c\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff]/;
    const odd = fc.constantFrom(
      '\u001b',
      '[',
      '31m',
      '\u202e',
      '\u200d',
      '\ufe0f',
      '\u{1f468}',
      'x',
      '\n',
      '\u0007',
      '\\',
      '\ud800',
    );
    fc.assert(
      fc.property(fc.array(odd, { maxLength: 40 }), (parts) => {
        for (const run of takeApart(parts.join(''), { lines: true }))
          if ('text' in run) expect(run.text).not.toMatch(unseen);
      }),
    );
  });
});
