import { isDetached, type Detached } from './entry-print.js';
import { type EvidenceClass, isKind, isTime, MAX_LINE, parseSource } from './grammar.js';
import { member, stringValue } from './json-node.js';
import { type JsonNode, parseStrictJson } from './json-parse.js';
import { decodeUtf8 } from './json-string.js';

/** What a reader may show of a line. Members that are missing or not of their form are left out. */
export interface EntryView {
  seq?: number;
  prev?: string;
  time?: string;
  /** `unclassified` as soon as anything is wrong: such a line is never shown as one of the four. */
  class: EvidenceClass | 'unclassified';
  source?: string;
  producer?: string;
  kind?: string;
  /** The exact JSON text. */
  data?: string;
  peer?: unknown;
  detached?: Detached[];
  /** The first thing wrong, in the order of this union. */
  problem?: 'json' | 'prefix' | 'time' | 'source' | 'kind' | 'data';
}

const PREFIX = /^\{"v":1,"seq":(0|[1-9][0-9]{0,15}),"prev":"([0-9a-f]{64})",$/;
/** `{"v":1,"seq":` + at most 16 digits + `,"prev":"` + 64 digits + `",` */
const MAX_PREFIX = 13 + 16 + 9 + 64 + 2;

/**
 * Reads a line for showing it. It says nothing about the chain: a view without a problem can stand in a broken log, and
 * an intact log can hold entries with problems. Never throws.
 *
 * @param line the bytes of one line, without its `\n`
 */
export function readEntry(line: Uint8Array): EntryView {
  if (line.length > MAX_LINE) return { class: 'unclassified', problem: 'json' };
  const parsed = parseStrictJson(line, { object: true });
  if (!parsed.ok) return { class: 'unclassified', problem: 'json' };
  const { root } = parsed;
  const view: EntryView = { class: 'unclassified' };
  const problems: EntryView['problem'][] = [];

  const prefix = readPrefix(line, root);
  if (prefix === undefined) problems.push('prefix');
  else {
    if (prefix.seq !== undefined) view.seq = prefix.seq;
    view.prev = prefix.prev;
  }
  const time = stringValue(line, member(root, 'time'));
  if (time !== undefined && isTime(time)) view.time = time;
  else problems.push('time');
  const source = stringValue(line, member(root, 'source'));
  const parts = source === undefined ? undefined : parseSource(source);
  if (source !== undefined && parts !== undefined) {
    view.source = source;
    view.producer = parts.producer;
  } else problems.push('source');
  const kind = stringValue(line, member(root, 'kind'));
  if (kind !== undefined && isKind(kind)) view.kind = kind;
  else problems.push('kind');
  const data = member(root, 'data');
  if (data?.type === 'object') view.data = decodeUtf8(line, data.start, data.end);
  else problems.push('data');

  const peer = member(root, 'peer');
  if (peer !== undefined) view.peer = valueOf(line, peer);
  const detached = member(root, 'detached');
  const list = detached === undefined ? undefined : valueOf(line, detached);
  if (Array.isArray(list) && list.every(isDetached)) view.detached = list;

  const [problem] = problems;
  if (problem !== undefined) view.problem = problem;
  else if (parts !== undefined) view.class = parts.class;
  return view;
}

/** The link, read from its fixed places: the first three members exactly as the format wants them. */
function readPrefix(line: Uint8Array, root: JsonNode): { seq?: number; prev: string } | undefined {
  const prev = root.members?.[2]?.value;
  if (root.start !== 0 || prev === undefined || prev.end + 1 > MAX_PREFIX) return undefined;
  const match = PREFIX.exec(decodeUtf8(line, 0, prev.end + 1));
  if (match === null) return undefined;
  const seq = Number(match[1]);
  return { ...(Number.isSafeInteger(seq) && { seq }), prev: match[2] as string };
}

/** A node as a JavaScript value. The text is known to be JSON of bounded depth, so that this cannot throw. */
function valueOf(line: Uint8Array, node: JsonNode): unknown {
  return JSON.parse(decodeUtf8(line, node.start, node.end));
}
