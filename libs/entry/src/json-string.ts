const decoder = new TextDecoder('utf-8', { ignoreBOM: true });

const SIMPLE: Record<number, string> = { 0x62: '\b', 0x66: '\f', 0x6e: '\n', 0x72: '\r', 0x74: '\t' };
const BACKSLASH = 0x5c;
/** Up to here a loop over characters is quicker than a call of the decoder. */
const SHORT = 64;

/** Bytes that are known to be UTF-8, as text. */
export function decodeUtf8(bytes: Uint8Array, start: number, end: number): string {
  if (end - start <= SHORT) {
    let text = '';
    let i = start;
    for (; i < end; i++) {
      const c = bytes[i] as number;
      if (c >= 0x80) break;
      text += String.fromCharCode(c);
    }
    if (i === end) return text;
  }
  return decoder.decode(bytes.subarray(start, end));
}

/**
 * The text that the inside of a JSON string stands for, as UTF-16 code units: escapes of lone surrogates stay lone
 * surrogates. The bytes are known to be a well-formed string's.
 */
export function unescapeJson(bytes: Uint8Array, start: number, end: number): string {
  const parts: string[] = [];
  let plain = start;
  let at = bytes.subarray(start, end).indexOf(BACKSLASH);
  if (at < 0) return decodeUtf8(bytes, start, end);
  at += start;
  while (at < end) {
    if (bytes[at] !== BACKSLASH) {
      at++;
      continue;
    }
    if (at > plain) parts.push(decodeUtf8(bytes, plain, at));
    const escape = bytes[at + 1] as number;
    if (escape === 0x75) {
      parts.push(String.fromCharCode(parseInt(decodeUtf8(bytes, at + 2, at + 6), 16)));
      at += 6;
    } else {
      parts.push(SIMPLE[escape] ?? String.fromCharCode(escape));
      at += 2;
    }
    plain = at;
  }
  if (end > plain) parts.push(decodeUtf8(bytes, plain, end));
  return parts.join('');
}
