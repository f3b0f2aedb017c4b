import { isHex, utf8 } from './encoding.js';
import { isKind, isTime, MAX_DEPTH, MAX_LINE, parseSource } from './grammar.js';
import { compactJson } from './json-node.js';
import { parseStrictJson } from './json-parse.js';

/** A value that stands elsewhere (docs/format.md, "Detached values"). */
export interface Detached {
  /** RFC 6901 pointer into `data`. */
  at: string;
  /** BLAKE3 of salt and value, 64 lower-case hex digits. */
  blake3: string;
  /** Length of the value without salt; never of a secret, nor of what a policy holds back. */
  bytes?: number;
  why: 'size' | 'depth' | 'secret' | 'policy';
  /** The string with its secret parts replaced by `[secret]`. */
  shown?: string;
}

/** An entry before it has its place in the chain. */
export interface EntryDraft {
  /** RFC 3339, UTC, milliseconds. */
  time: string;
  /** `class:producer`. */
  source: string;
  kind: string;
  /** The exact JSON text of one object. */
  data: string;
  /** Written only by the recorder: the process that spoke, with what the kernel vouches for. */
  peer?: Record<string, unknown>;
  /** Written only by the recorder. */
  detached?: Detached[];
}

/** A draft that no entry may be made of; `code` names the member at fault, or says that the line would be too long. */
export class EntryError extends Error {
  override readonly name = 'EntryError';
  constructor(
    readonly code: 'seq' | 'prev' | 'time' | 'source' | 'kind' | 'data' | 'peer' | 'detached' | 'too-long',
    message: string,
  ) {
    super(message);
  }
}

/**
 * The line of an entry, UTF-8, without its `\n`. What it returns always passes `readEntry` without a problem.
 * `data` is kept as it is written; only where it spreads over lines does the white space between its tokens go.
 *
 * @param seq number of the entry, from 0
 * @param prev hash of the line before, or the genesis link: 64 lower-case hex digits
 * @throws EntryError where the draft breaks the grammar, or the line would exceed MAX_LINE bytes
 */
export function printEntry(seq: number, prev: string, draft: EntryDraft): Uint8Array {
  if (!Number.isSafeInteger(seq) || seq < 0) throw new EntryError('seq', `no entry number: ${seq}`);
  if (!isHex(prev, 32)) throw new EntryError('prev', 'prev is not 64 lower-case hex digits');
  if (!isTime(draft.time)) throw new EntryError('time', `no RFC 3339 UTC time with milliseconds: ${draft.time}`);
  if (parseSource(draft.source) === undefined) throw new EntryError('source', `no class:producer: ${draft.source}`);
  if (!isKind(draft.kind)) throw new EntryError('kind', `no kind: ${draft.kind}`);
  let text = `{"v":1,"seq":${seq},"prev":"${prev}","time":"${draft.time}","source":"${draft.source}","kind":"${draft.kind}"`;
  text += `,"data":${checkedData(draft.data)}`;
  if (draft.peer !== undefined) text += `,"peer":${checkedPeer(draft.peer)}`;
  if (draft.detached !== undefined) text += `,"detached":[${draft.detached.map(detachedText).join(',')}]`;
  const line = utf8(`${text}}`);
  if (line.length > MAX_LINE)
    throw new EntryError('too-long', `the line has ${line.length} bytes, at most ${MAX_LINE} are allowed`);
  return line;
}

function checkedData(data: string): string {
  // Lone surrogates cannot be written as UTF-8; encoding would replace them and change what was said.
  if (/[\uD800-\uDFFF]/u.test(data)) throw new EntryError('data', 'data holds a lone surrogate outside an escape');
  const bytes = utf8(data);
  const parsed = parseStrictJson(bytes, { object: true, maxDepth: MAX_DEPTH - 1 });
  if (!parsed.ok) throw new EntryError('data', `data is not one JSON object: ${parsed.reason} at byte ${parsed.at}`);
  return data.includes('\n') ? compactJson(bytes, parsed.root) : data;
}

function checkedPeer(peer: Record<string, unknown>): string {
  const text = JSON.stringify(peer) as string | undefined;
  const parsed =
    text === undefined ? undefined : parseStrictJson(utf8(text), { object: true, maxDepth: MAX_DEPTH - 1 });
  if (text === undefined || parsed?.ok !== true)
    throw new EntryError('peer', 'peer cannot be written as one JSON object');
  return text;
}

const POINTER = /^(?:\/(?:[^~/]|~[01])*)*$/;
const WHY: readonly string[] = ['size', 'depth', 'secret', 'policy'];

/** Whether a parsed value is one element of `detached` as the format wants it. */
export function isDetached(value: unknown): value is Detached {
  if (typeof value !== 'object' || value === null) return false;
  const { at, blake3, bytes, why, shown } = value as Partial<Record<keyof Detached, unknown>>;
  if (typeof at !== 'string' || !POINTER.test(at)) return false;
  if (typeof blake3 !== 'string' || !isHex(blake3, 32)) return false;
  if (typeof why !== 'string' || !WHY.includes(why)) return false;
  if (bytes !== undefined && (!Number.isSafeInteger(bytes) || (bytes as number) < 0)) return false;
  if (bytes !== undefined && (why === 'secret' || why === 'policy')) return false;
  return shown === undefined || typeof shown === 'string';
}

function detachedText(value: Detached): string {
  if (!isDetached(value)) throw new EntryError('detached', `no detached value: ${JSON.stringify(value)}`);
  const { at, blake3, bytes, why, shown } = value;
  return JSON.stringify({
    at,
    blake3,
    ...(bytes !== undefined && { bytes }),
    why,
    ...(shown !== undefined && { shown }),
  });
}
