/** A step of a pointer (RFC 6901) into the payload; written out only for what is taken in the end. */
export interface Path {
  parent: Path | undefined;
  token: string;
  /** Bytes of the pointer at most, escapes included. */
  length: number;
}

/** What an element of `detached` takes besides its pointer and `shown`. */
const ELEMENT = 160;

/** Bytes that an element of `detached` takes, at most. */
export function elementCost(path: Path, shown?: string): number {
  return ELEMENT + path.length + (shown === undefined ? 0 : jsonLength(shown) + 12);
}

/** Bytes that a text takes inside a JSON string (of a pointer), at most. */
export function jsonLength(text: string): number {
  let length = 0;
  for (let i = 0; i < text.length; i++) {
    const c = text.charCodeAt(i);
    if (c < 0x20 || c > 0x7e) length += 6;
    else length += c === 0x22 || c === 0x5c || c === 0x7e || c === 0x2f ? 2 : 1;
  }
  return length;
}

export function escapeToken(token: string): string {
  return token.replaceAll('~', '~0').replaceAll('/', '~1');
}

/** The pointer as it stands in an entry: `/tool_input/content`. */
export function pointerOf(path: Path): string {
  const tokens: string[] = [];
  for (let at: Path | undefined = path; at; at = at.parent) tokens.push(escapeToken(at.token));
  return `/${tokens.reverse().join('/')}`;
}
