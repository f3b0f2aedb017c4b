/** A run of text as it may be shown, or one thing that must be boxed: its label, what it is, and the characters it stands for. */
export type Run = { text: string } | { box: string; name: string; real: string };

const NAMES: Record<number, string> = {
  0x00: 'NUL',
  0x07: 'BELL',
  0x08: 'BACKSPACE',
  0x09: 'TAB',
  0x0a: 'LINE FEED',
  0x0b: 'VERTICAL TAB',
  0x0c: 'FORM FEED',
  0x0d: 'CARRIAGE RETURN',
  0x1b: 'ESCAPE',
  0x7f: 'DELETE',
  0xad: 'SOFT HYPHEN',
  0x61c: 'ARABIC LETTER MARK',
  0x180e: 'MONGOLIAN VOWEL SEPARATOR',
  0x200b: 'ZERO WIDTH SPACE',
  0x200c: 'ZERO WIDTH NON-JOINER',
  0x200d: 'ZERO WIDTH JOINER',
  0x200e: 'LEFT-TO-RIGHT MARK',
  0x200f: 'RIGHT-TO-LEFT MARK',
  0x2028: 'LINE SEPARATOR',
  0x2029: 'PARAGRAPH SEPARATOR',
  0x202a: 'LEFT-TO-RIGHT EMBEDDING',
  0x202b: 'RIGHT-TO-LEFT EMBEDDING',
  0x202c: 'POP DIRECTIONAL FORMATTING',
  0x202d: 'LEFT-TO-RIGHT OVERRIDE',
  0x202e: 'RIGHT-TO-LEFT OVERRIDE: would turn the text after it round',
  0x2060: 'WORD JOINER',
  0x2066: 'LEFT-TO-RIGHT ISOLATE',
  0x2067: 'RIGHT-TO-LEFT ISOLATE',
  0x2068: 'FIRST STRONG ISOLATE',
  0x2069: 'POP DIRECTIONAL ISOLATE',
  0xfeff: 'ZERO WIDTH NO-BREAK SPACE',
};

// Terminal sequences whole, so that what they carry (a colour, a title, a link) is not read as text; then lone surrogates; then every character
// that is drawn as nothing or that rules its neighbours: controls, bidi, zero width, separators, fillers, tags, variation selectors but the emoji one.
const SEQUENCE = String.raw`\u001b\[[0-9:;<=>?]*[ -/]*[@-~]|\u001b[\]P^_X][^\u0007\u001b\n]{0,256}(?:\u0007|\u001b\\)?|\u001b[ -/]*[0-~]?`;
const SURROGATE = String.raw`\p{Surrogate}`;
const UNSEEN = String.raw`[\u0000-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0e\ufeff\uffa0\ufff0-\ufffb\u{1d173}-\u{1d17a}\u{e0000}-\u{e0fff}]`;
const HOSTILE = new RegExp(`${SEQUENCE}|${SURROGATE}|${UNSEEN}`, 'gu');
// Alternatives, not a class: Chromium 150 does not match this class at the end of a text (/[\p{Extended_Pictographic}\ufe0f]$/u on a picture).
const PICTURE_BEFORE = /(?:\p{Extended_Pictographic}|\p{Emoji_Modifier}|\ufe0f)$/u;
const PICTURE_AFTER = /^\p{Extended_Pictographic}/u;

/**
 * Takes a text of unknown origin apart so that nothing in it can act or hide: terminal escapes, control characters, bidirectional controls,
 * zero-width and unassigned-looking characters, lone surrogates. Line feeds and tabs stay text where `lines` is set. A joiner between
 * two pictures is an emoji and stays.
 */
export function takeApart(text: string, options: { lines: boolean }): Run[] {
  const runs: Run[] = [];
  let [start, from] = [0, 0];
  HOSTILE.lastIndex = 0;
  for (const match of text.matchAll(HOSTILE)) {
    const [real, at] = [match[0], match.index];
    const end = at + real.length;
    if (options.lines && (real === '\n' || real === '\t')) continue;
    if (
      real === '\u200d' &&
      PICTURE_BEFORE.test(text.slice(Math.max(0, at - 2), at)) &&
      PICTURE_AFTER.test(text.slice(end, end + 2))
    )
      continue;
    if (at > from) runs.push({ text: text.slice(from, at) });
    runs.push(boxOf(real));
    from = end;
  }
  start = from;
  if (start < text.length) runs.push({ text: text.slice(start) });
  return runs;
}

function boxOf(real: string): Run {
  if (real.startsWith('\u001b') && real.length > 1) {
    return {
      box: `ESC${real.slice(1).replace(/[\u0007\u001b]\\?$/, '')}`,
      name: 'terminal escape, not carried out',
      real,
    };
  }
  const code = real.codePointAt(0) ?? 0;
  if (code >= 0xd800 && code <= 0xdfff)
    return { box: String.raw`\u${code.toString(16)}`, name: 'LONE SURROGATE, kept as it was said', real };
  const hex = code.toString(16).toUpperCase();
  const box =
    code < 0x20 || (code >= 0x7f && code < 0xa0)
      ? code === 0x1b
        ? 'ESC'
        : `0x${hex.padStart(2, '0')}`
      : `U+${hex.padStart(4, '0')}`;
  return { box, name: NAMES[code] ?? (code < 0xa0 ? 'control character' : 'character that is not seen'), real };
}
