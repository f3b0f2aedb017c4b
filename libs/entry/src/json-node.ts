import type { JsonNode } from './json-parse.js';
import { decodeUtf8, unescapeJson } from './json-string.js';

/** The JSON text of a node without white space between its tokens; the tokens themselves byte for byte as written. */
export function compactJson(bytes: Uint8Array, node: JsonNode): string {
  const out = new Uint8Array(node.end - node.start);
  let length = 0;
  let inString = false;
  for (let i = node.start; i < node.end; i++) {
    const c = bytes[i] as number;
    if (inString) {
      out[length++] = c;
      if (c === 0x5c) out[length++] = bytes[++i] as number;
      else if (c === 0x22) inString = false;
    } else if (c !== 0x20 && c !== 0x09 && c !== 0x0a && c !== 0x0d) {
      out[length++] = c;
      inString = c === 0x22;
    }
  }
  return decodeUtf8(out, 0, length);
}

/** The value of an object's member; `undefined` where there is none or the node is no object. */
export function member(node: JsonNode | undefined, key: string): JsonNode | undefined {
  return node?.members?.find((m) => m.key === key)?.value;
}

/** What a string node says, unescaped, as UTF-16 code units; `undefined` where the node is no string. */
export function stringValue(bytes: Uint8Array, node: JsonNode | undefined): string | undefined {
  if (node?.type !== 'string') return undefined;
  return unescapeJson(bytes, node.start + 1, node.end - 1);
}
