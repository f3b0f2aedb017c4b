// Text that an agent chose, made safe for a terminal: nothing in it moves the cursor, changes colours, reorders or hides what
// stands beside it. What could is shown as a box that names it, never dropped.

const NAMES: Record<number, string> = {
  0x00: 'NUL',
  0x07: 'BEL',
  0x08: 'BS',
  0x09: 'TAB',
  0x0a: 'LF',
  0x0d: 'CR',
  0x1b: 'ESC',
  0x7f: 'DEL',
  0x200d: 'ZWJ',
  0xfeff: 'BOM',
};

// Controls, format characters (bidi, zero width, tags), line separators, lone surrogates, unassigned and private characters,
// blank fillers that look like nothing; and heaps of combining marks, which climb over neighbouring lines.
const UNSAFE = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}\p{Cn}\p{Co}\u115f\u1160\u3164\uffa0\u2800]|(?<=\p{M}{4})\p{M}+/gu;

/** How a box is drawn: plainly by default; a command gives a painter that makes it stand out. */
export type Box = (text: string) => string;
const plain: Box = (text) => text;

/** One line: line breaks and tabs are boxed too. */
export function safeLine(text: string, box: Box = plain): string {
  return text.replace(UNSAFE, (found) => box(`⟦${nameOf(found)}⟧`));
}

/** Several lines: "\n" and "\t" stay. */
export function safeText(text: string, box: Box = plain): string {
  return text.replace(UNSAFE, (found) => (found === '\n' || found === '\t' ? found : box(`⟦${nameOf(found)}⟧`)));
}

function nameOf(found: string): string {
  const code = found.codePointAt(0) as number;
  if (/^\p{M}/u.test(found)) return `${String([...found].length)} marks`;
  return NAMES[code] ?? `U+${code.toString(16).toUpperCase().padStart(4, '0')}`;
}

const WIDE =
  /[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\ua960-\ua97c\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\u{20000}-\u{3fffd}]|\p{Emoji_Presentation}/u;

/** Cuts safe text to so many columns; `…` marks the cut. */
export function fit(text: string, columns: number): string {
  let width = 0;
  let out = '';
  for (const c of text) {
    const w = c < '\u007f' ? 1 : /\p{M}/u.test(c) ? 0 : WIDE.test(c) ? 2 : 1;
    if (width + w > columns - 1 && width + w + widthOf(text.slice(out.length + c.length)) > columns) return `${out}…`;
    width += w;
    out += c;
  }
  return out;
}

function widthOf(text: string): number {
  let width = 0;
  for (const c of text) width += c < '\u007f' ? 1 : /\p{M}/u.test(c) ? 0 : WIDE.test(c) ? 2 : 1;
  return width;
}
