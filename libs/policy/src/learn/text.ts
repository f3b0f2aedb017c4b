import type { PolicyDocument } from '../document.js';
import type { Held } from './seen.js';

/** A profile as a file: what was held back stands above it, as comments. `of`: the program it was learned of. */
export function profileText(document: PolicyDocument, held: readonly Held[], of: string): string {
  const told = held.map(({ item, why }) => `// held back: ${quoted(item)}: ${why.replace(UNSEEN, ' ')}`);
  return [`// Written by nd7 learn, of ${quoted(of)}.`, ...told, quoted(document, 2), ''].join('\n');
}

/** Controls, and what writes backwards or is not seen: names bring it, and a profile is read by people and printed to terminals. */
const UNSEEN = /[\p{Cc}\p{Cf}\u2028\u2029]/gu;

/** JSON in which what is not seen is written as its number; the line ends that indent it stay. */
function quoted(value: unknown, indent = 0): string {
  return JSON.stringify(value, null, indent).replace(UNSEEN, (c) =>
    c === '\n'
      ? c
      : Array.from({ length: c.length }, (_, i) => `\\u${c.charCodeAt(i).toString(16).padStart(4, '0')}`).join(''),
  );
}
