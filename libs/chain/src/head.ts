import { isHex, member, parseStrictJson, stringValue, type JsonNode } from '@nd7/entry';

/** How many entries a log has, and the hash of the last one (of none: the genesis link). */
export interface Head {
  entries: number;
  hash: string;
}

/** A head file is a hundred bytes; what is larger than this is none, and is not parsed. */
const MAX_HEAD_FILE = 65_536;

/**
 * Reads `head.json`. `undefined` for anything that is not of the form in docs/format.md: then the log is verified without it
 * and its length rests on nothing. Counts above 2^53 are rounded: no log has so many lines, so the verdict is `truncated` either way.
 */
export function parseHeadFile(bytes: Uint8Array): (Head & { bytes: number }) | undefined {
  if (bytes.length > MAX_HEAD_FILE) return undefined;
  const parsed = parseStrictJson(bytes, { object: true });
  if (!parsed.ok) return undefined;
  const entries = count(bytes, member(parsed.root, 'entries'));
  const size = count(bytes, member(parsed.root, 'bytes'));
  const hash = stringValue(bytes, member(parsed.root, 'hash'));
  if (entries === undefined || size === undefined || hash === undefined || !isHex(hash, 32)) return undefined;
  return { entries, hash, bytes: size };
}

/** The text of `head.json` for a durable prefix of `bytes` bytes. */
export function formatHeadFile(head: Head & { bytes: number }): string {
  return `{"entries":${String(head.entries)},"hash":"${head.hash}","bytes":${String(head.bytes)}}\n`;
}

/** A number written as a count (decimal, no leading zero, at most 16 digits); its spelling decides, not its value. */
function count(bytes: Uint8Array, node: JsonNode | undefined): number | undefined {
  if (node?.type !== 'number' || node.end - node.start > 16) return undefined;
  let value = 0;
  for (let i = node.start; i < node.end; i++) {
    const digit = (bytes[i] as number) - 0x30;
    if (digit < 0 || digit > 9 || (digit === 0 && i === node.start && node.end - node.start > 1)) return undefined;
    value = value * 10 + digit;
  }
  return value;
}
