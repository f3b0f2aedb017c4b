/**
 * The grammar of a log line (docs/format.md, "An entry").
 *
 * It promises: strict JSON by RFC 8259 with no key twice, exact bytes kept, names and limits of the format in one
 * place, linear time and bounded depth on any input, and that no parser here ever throws on what it is given.
 * It does not look at links, hashes or signatures (`@nd7/chain` does), nor at many lines quickly (`@nd7/blake3` does).
 * Called by everything that writes, shows or checks entries; the same code in Node and in the browser.
 */
export type { Clock, Random } from './ports.js';
export { MAX_LINE, MAX_DEPTH, isSessionId, parseSource, isKind, isTime, formatTime } from './grammar.js';
export type { EvidenceClass } from './grammar.js';
export { printEntry, EntryError } from './entry-print.js';
export type { Detached, EntryDraft } from './entry-print.js';
export { readEntry } from './entry-read.js';
export type { EntryView } from './entry-read.js';
export { parseStrictJson } from './json-parse.js';
export type { JsonFault, JsonNode } from './json-parse.js';
export { compactJson, member, stringValue } from './json-node.js';
export { toHex, fromHex, isHex, toBase64, fromBase64, utf8 } from './encoding.js';
