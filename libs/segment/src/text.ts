/// <reference path="../../entry/src/platform.d.ts" />
const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** Bytes as text, a byte order mark kept as a character; undefined where they are not UTF-8. */
export function textOf(bytes: Uint8Array): string | undefined {
  try {
    return decoder.decode(bytes);
  } catch {
    return undefined;
  }
}
