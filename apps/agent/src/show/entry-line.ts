// One entry as one line of a timeline. The class stands on every line: intent is never shown as if it had happened.
import type { EntryView } from '@nd7/entry';
import { describeEntry } from '@nd7/hooks';
import type { Io } from '../cli/io.js';
import { effectText, tieText } from './effect-text.js';
import { fit, safeLine } from './safe.js';

/** What a timeline knows of an entry: plain data, printed as it stands by `--json`. */
export interface TimelineEntry {
  seq: number;
  time: string | null;
  class: EntryView['class'];
  source: string | null;
  kind: string | null;
  event: string | null;
  tool: string | null;
  tool_use_id: string | null;
  agent_id: string | null;
  text: string | null;
  /** What a call gave back: the first line of its output, or its error. */
  outcome: string | null;
  /** Values that stand outside the log. */
  detached: number;
  /** Why it is unclassified. */
  problem: string | null;
}

/** Texts in the result are the agent's: make them safe before they reach a terminal. */
export function timelineEntry(seq: number, view: EntryView): TimelineEntry {
  const { event, tool, toolUseId, agentId, text } = describeEntry(view);
  return {
    seq,
    time: view.time ?? null,
    class: view.class,
    source: view.source ?? null,
    kind: view.kind ?? null,
    event: event ?? null,
    tool: tool ?? null,
    tool_use_id: toolUseId ?? null,
    agent_id: agentId ?? null,
    // Of a decision its verdict, not what else it says; of an effect what was seen.
    text: (['decision', 'effect'].includes(view.class) ? ownText(view) : undefined) ?? text ?? ownText(view) ?? null,
    outcome: outcomeOf(view) ?? null,
    detached: view.detached?.length ?? 0,
    problem: view.problem ?? null,
  };
}

/** What the recorder's own entries are about, and decisions of nd7's parts. */
function ownText(view: EntryView): string | undefined {
  if (view.data === undefined) return undefined;
  if (view.class === 'decision') return decisionText(JSON.parse(view.data) as Record<string, unknown>);
  if (view.class === 'effect') return effectText(view.kind, JSON.parse(view.data) as Record<string, unknown>);
  if (view.class !== 'recorder') return undefined;
  const data = JSON.parse(view.data) as Record<string, unknown>;
  if (view.kind === 'seal') return `next key ${String(data['next']).slice(0, 8)}…`;
  const told = Object.entries(data).filter(
    ([name, value]) => !['machine', 'key', 'cert'].includes(name) && typeof value !== 'object',
  );
  return told.map(([name, value]) => `${name} ${String(value)}`).join(', ');
}

const MOST_RULES = 10;

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}

/** One rule's part in a session. */
function sumText({ verdict, count, rule }: Record<string, unknown>): string {
  return `${String(verdict)} ${String(count)} times by ${String(rule ?? 'the boundary')}`;
}

/** Of a name or a host: what was decided about it, what of it, and by which rule. */
function decisionText(data: Record<string, unknown>): string | undefined {
  const { verdict, call, path, host, port, reason, held, source, rules } = data;
  if (Array.isArray(rules)) return rules.slice(0, MOST_RULES).filter(isObject).map(sumText).join(', ');
  const rule = isObject(source) && source['text'] !== undefined ? String(source['text']) : undefined;
  const keys = Array.isArray(held) && held.length > 0 ? held.map(String).join(', ') : undefined;
  const about = host ?? path;
  if (typeof data['id'] === 'string' && typeof about === 'string')
    return [
      data['id'],
      verdict ?? reason,
      call,
      about,
      ...(typeof data['for'] === 'string' ? [`for ${data['for']}`] : []),
    ].join(' ');
  const what =
    typeof path === 'string'
      ? [verdict, call, path]
      : typeof host === 'string'
        ? [verdict, port === null ? host : `${host}:${String(port)}`, reason ?? '']
        : undefined;
  if (what === undefined) return undefined;
  const said = what.filter((part) => typeof part === 'string' && part !== '').join(' ');
  return [said, keys, rule && `by ${rule}`, tieText(data)].filter((part) => part !== undefined).join(', ');
}

/** What a finished call gave back, where its form is known. */
function outcomeOf(view: EntryView): string | undefined {
  if ((view.kind !== 'tool.after' && view.kind !== 'tool.failed') || view.data === undefined) return undefined;
  const { tool_response: response, error } = JSON.parse(view.data) as Record<string, unknown>;
  const members = typeof response === 'object' && response !== null ? (response as Record<string, unknown>) : {};
  for (const said of [error, response, members['stdout'], members['stderr'], members['error']]) {
    const line = typeof said === 'string' ? said.trimStart().split(/[\r\n]/, 1)[0] : undefined;
    if (line !== undefined && line !== '') return line.length > 200 ? `${line.slice(0, 200)}…` : line;
  }
  return undefined;
}

/** Ink weight is evidence weight: what was said is faint, what was decided plain, what happened bold. */
const INK = { intent: 'dim', decision: 'cyan', effect: 'bold', recorder: 'dim', unclassified: 'yellow' } as const;
const MARK = { intent: '┄', decision: '◇', effect: '■', recorder: '·', unclassified: '?' } as const;

/** Columns of a line that nobody sees on a terminal: whole, but for giant texts. */
const UNSEEN = 1_000;

/** The printed line: number, clock, class, kind, tool and what it is about; on a terminal never wider than that. */
export function printedLine(io: Io, entry: TimelineEntry, clock: (time: string) => string): string {
  const time = entry.time === null ? '--:--:--' : clock(entry.time);
  const kind = safeLine(entry.kind ?? 'no kind')
    .slice(0, 17)
    .padEnd(17);
  const front = `${String(entry.seq).padStart(6)}  ${time}  ${MARK[entry.class]} ${entry.class.padEnd(9)} ${kind} `;
  const said = [
    entry.agent_id === null ? '' : `[${safeLine(entry.agent_id).slice(0, 8)}]`,
    entry.problem === null ? '' : `[${entry.problem} not of its form]`,
    safeLine(entry.tool ?? ''),
    safeLine(entry.text ?? entry.event ?? ''),
    entry.outcome === null ? '' : `→ ${safeLine(entry.outcome)}`,
    entry.detached === 0 ? '' : `(${String(entry.detached)} detached)`,
  ];
  const room = io.isTerminal ? Math.max(20, io.columns - front.length) : UNSEEN;
  const about = fit(said.filter((part) => part !== '').join(' '), room);
  return `${io.paint(entry.class === 'effect' ? 'bold' : 'dim', front)}${paintBoxes(io, about, styleOf(entry))}`;
}

function styleOf(entry: TimelineEntry): Parameters<Io['paint']>[0] {
  if (entry.class === 'recorder' && (entry.kind === 'alarm' || entry.kind === 'gap')) return ['red', 'bold'];
  if (entry.kind === 'tool.failed' || entry.kind === 'permission.denied' || entry.kind === 'rule.deny') return 'red';
  return INK[entry.class];
}

/** Boxed characters stand out whatever the line's own style is. */
function paintBoxes(io: Io, text: string, style: Parameters<Io['paint']>[0]): string {
  return text
    .split(/(⟦[^⟧]*⟧)/)
    .map((part) =>
      part === '' ? '' : part.startsWith('⟦') && part.endsWith('⟧') ? io.paint('yellow', part) : io.paint(style, part),
    )
    .join('');
}
