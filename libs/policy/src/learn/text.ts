import type { PolicyDocument } from '../document.js';
import type { Held } from './seen.js';

/** A profile as a file: what was held back stands above it, as comments. `of`: the program it was learned of. */
export function profileText(document: PolicyDocument, held: readonly Held[], of: string): string {
  const told = held.map(({ item, why }) => `// held back: ${JSON.stringify(item)}: ${line(why)}`);
  return [`// Written by nd7 learn, of ${JSON.stringify(of)}.`, ...told, JSON.stringify(document, null, 2), ''].join(
    '\n',
  );
}

/** What comes from a file's name does not begin a line of its own. */
function line(text: string): string {
  return text.replace(/[\p{Cc}\u2028\u2029]/gu, ' ');
}
