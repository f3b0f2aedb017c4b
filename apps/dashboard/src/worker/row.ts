import { type EvidenceClass, isKind, isTime, parseSource } from '@nd7/entry';
import type { Line } from './lines.js';

/** What the timeline needs to know of one line without holding its bytes. Texts are the agent's: untrusted. */
export interface Row {
  /** Number of the line, from 0; in an intact log the entry's `seq`. */
  seq: number;
  /** Where its bytes lie in the session's stream. */
  start: number;
  end: number;
  class: EvidenceClass | 'unclassified';
  producer?: string;
  kind?: string;
  /** The recorder's clock, milliseconds since the epoch. */
  time?: number;
  /** Why the line is no entry, where it is none. */
  fault?: string;
  /** The client's own name of the event. */
  event?: string;
  tool?: string;
  /** The agent's id of the tool call. */
  call?: string;
  /** Ids of the calls a batch reports. */
  calls?: string[];
  /** The subagent that spoke; left out for the main one. */
  agent?: string;
  agentType?: string;
  /** One line of what it is about. */
  text?: string;
  /** How long the client says a call took. */
  took?: number;
  detached?: number;
}

/** Members of a tool's input that say best what a call is about, in this order. */
const TELLING = [
  'command',
  'file_path',
  'notebook_path',
  'path',
  'pattern',
  'url',
  'query',
  'prompt',
  'description',
  'skill',
  'subject',
  'text',
];
const PLAIN = [
  'prompt',
  'message',
  'error',
  'last_assistant_message',
  'delta',
  'file_path',
  'reason',
  'source',
  'name',
  'detail',
  'rule',
  'path',
  'host',
];
const MAX_TEXT = 400;
const MAX_ID = 200;
const MAX_CALLS = 256;

const decoder = new TextDecoder();

/**
 * Reads a line for the timeline. A line with a fault, or whose time, source, kind or data is missing or not of its form, is `unclassified`:
 * never shown as one of the four classes.
 */
export function rowOf(seq: number, line: Line): Row {
  const row: Row = { seq, start: line.start, end: line.end, class: 'unclassified' };
  if (line.fault !== undefined || line.bytes === undefined) return { ...row, fault: line.fault ?? 'too-long' };
  const entry = JSON.parse(decoder.decode(line.bytes)) as Record<string, unknown>;
  const [time, source, kind] = [text(entry.time), text(entry.source), text(entry.kind)];
  const parts = source === undefined ? undefined : parseSource(source);
  const data = record(entry.data);
  if (time !== undefined && isTime(time)) row.time = Date.parse(time);
  if (kind !== undefined && isKind(kind)) row.kind = kind;
  if (parts !== undefined) row.producer = parts.producer;
  if (row.time !== undefined && row.kind !== undefined && parts !== undefined && data !== undefined)
    row.class = parts.class;
  if (Array.isArray(entry.detached)) row.detached = entry.detached.length;
  if (data !== undefined) describe(row, data, shownTexts(entry.detached));
  const connection = data === undefined ? undefined : connectionText(row, data);
  if (connection !== undefined) row.text = connection.slice(0, MAX_TEXT);
  return row;
}

function describe(row: Row, data: Record<string, unknown>, shown: ReadonlyMap<string, string>): void {
  const put = <K extends 'event' | 'tool' | 'call' | 'agent' | 'agentType' | 'text'>(
    key: K,
    value: string | undefined,
    most: number,
  ) => {
    if (value !== undefined && value !== '') row[key] = value.slice(0, most);
  };
  put('event', text(data.hook_event_name) ?? text(data.hookName), MAX_ID);
  put('tool', text(data.tool_name) ?? text(data.toolName), MAX_ID);
  put('call', text(data.tool_use_id), MAX_ID);
  put('agent', text(data.agent_id), MAX_ID);
  put('agentType', text(data.agent_type), MAX_ID);
  put('text', tellingText(data, shown), MAX_TEXT);
  if (typeof data.duration_ms === 'number' && data.duration_ms >= 0) row.took = data.duration_ms;
  if (Array.isArray(data.tool_calls)) {
    const ids = data.tool_calls.slice(0, MAX_CALLS).map((call) => text(record(call)?.tool_use_id));
    row.calls = ids.filter((id) => id !== undefined).map((id) => id.slice(0, MAX_ID));
  }
}

/** Of a connection where it goes, what was decided or went through it, and how its call is known. */
function connectionText({ class: of, kind }: Row, data: Record<string, unknown>): string | undefined {
  const isEnd = of === 'effect' && kind === 'network.end';
  if (!isEnd && !(of === 'decision' && kind === 'network')) return undefined;
  const host = text(data.host);
  const where =
    host === undefined ? 'various hosts' : typeof data.port === 'number' ? `${host}:${String(data.port)}` : host;
  const bytes =
    typeof data.sent === 'number' ? `${String(data.sent)} bytes out, ${String(data.received)} in` : undefined;
  const parts = [
    isEnd ? where : `${text(data.verdict) ?? ''} ${where}`,
    isEnd ? bytes : text(data.reason),
    data.tied === 'hooks' ? 'its call is known by the hooks alone' : undefined,
  ];
  return parts.filter((part) => part !== undefined).join(', ');
}

function tellingText(data: Record<string, unknown>, shown: ReadonlyMap<string, string>): string | undefined {
  for (const inputName of ['tool_input', 'toolArgs']) {
    const input = record(data[inputName]);
    for (const key of input === undefined ? [] : TELLING) {
      const value = text(input?.[key]) ?? shown.get(`/${inputName}/${key}`);
      if (value !== undefined) return firstLine(value);
    }
  }
  for (const key of PLAIN) {
    const value = text(data[key]) ?? shown.get(`/${key}`);
    if (value !== undefined) return firstLine(value);
  }
  return undefined;
}

/** What the recorder left readable of detached values, by pointer. */
function shownTexts(detached: unknown): Map<string, string> {
  const shown = new Map<string, string>();
  for (const one of Array.isArray(detached) ? (detached as unknown[]) : []) {
    const [at, words] = [text(record(one)?.at), text(record(one)?.shown)];
    if (at !== undefined && words !== undefined) shown.set(at, words);
  }
  return shown;
}

function firstLine(value: string): string {
  return value.trimStart().split(/[\r\n]/, 1)[0] ?? '';
}

function text(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined;
}

function record(value: unknown): Record<string, unknown> | undefined {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
    ? (value as Record<string, unknown>)
    : undefined;
}
