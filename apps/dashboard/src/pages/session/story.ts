import type { Row } from '../../worker/row.js';

/** One tool call with all that is known of it, tied by the agent's own id of the call. Numbers are entries. */
export interface CallItem {
  type: 'call';
  /** The entry the call is shown at: the first that names it. */
  seq: number;
  id: string;
  tool: string;
  agent?: string | undefined;
  before?: Row;
  after?: Row;
  failed?: Row;
  /** The batch that reports it: the only trace of a call that failed before it ran. */
  batch?: Row;
  decisions: Row[];
  effects: Row[];
  others: Row[];
}

export type Item =
  | CallItem
  /** Something said: a prompt, an answer. */
  | { type: 'say'; seq: number; row: Row; who: 'user' | 'agent' | 'subagent' }
  /** Anything else, in one line. */
  | { type: 'line'; seq: number; row: Row };

/** What became of a call. */
export type CallState = 'returned' | 'failed' | 'reported' | 'running' | 'never';

/**
 * Tells the log as a story: entries of one tool call under each other, what was said as speech, the rest as lines, in the order of the log.
 * Calls are paired by the agent's id only; nothing is guessed from names or times.
 */
export function tellStory(rows: readonly Row[]): Item[] {
  const items: Item[] = [];
  const calls = new Map<string, CallItem>();
  for (const row of rows) {
    if (row.class === 'unclassified') items.push({ type: 'line', seq: row.seq, row });
    else if (row.call !== undefined && belongsToCall(row)) {
      let call = calls.get(row.call);
      if (call === undefined) {
        call = {
          type: 'call',
          seq: row.seq,
          id: row.call,
          tool: row.tool ?? 'tool',
          agent: row.agent,
          decisions: [],
          effects: [],
          others: [],
        };
        calls.set(row.call, call);
        items.push(call);
      }
      addTo(call, row);
    } else if (row.kind === 'tool.batch' && row.calls !== undefined && row.calls.length > 0) {
      const known = row.calls.map((id) => calls.get(id)).filter((call) => call !== undefined);
      for (const call of known) call.batch ??= row;
      if (known.length < row.calls.length) items.push({ type: 'line', seq: row.seq, row });
    } else {
      const who = speaker(row);
      items.push(who === undefined ? { type: 'line', seq: row.seq, row } : { type: 'say', seq: row.seq, row, who });
    }
  }
  return items;
}

function belongsToCall(row: Row): boolean {
  return row.class === 'decision' || row.class === 'effect' || /^(tool|permission)\./.test(row.kind ?? '');
}

function addTo(call: CallItem, row: Row): void {
  if (row.class === 'decision') call.decisions.push(row);
  else if (row.class === 'effect') call.effects.push(row);
  else if (row.kind === 'tool.before' && call.before === undefined) call.before = row;
  else if (row.kind === 'tool.after' && call.after === undefined) call.after = row;
  else if (row.kind === 'tool.failed' && call.failed === undefined) call.failed = row;
  else call.others.push(row);
}

/** Who speaks in a row, where somebody does. Only intent is speech. */
function speaker(row: Row): 'user' | 'agent' | 'subagent' | undefined {
  if (row.class !== 'intent' || row.text === undefined) return undefined;
  if (row.kind === 'prompt') return 'user';
  if (row.kind === 'agent.stop') return 'subagent';
  if (row.kind === 'turn.end' || row.event === 'MessageDisplay') return row.agent === undefined ? 'agent' : 'subagent';
  return undefined;
}

export function callState(call: CallItem, isOver: boolean): CallState {
  if (call.failed !== undefined) return 'failed';
  if (call.after !== undefined) return 'returned';
  if (call.batch !== undefined) return 'reported';
  return isOver ? 'never' : 'running';
}

/** All entries of an item, in order. */
export function rowsOf(item: Item): Row[] {
  if (item.type !== 'call') return [item.row];
  const single = [item.before, item.after, item.failed, item.batch].filter((row) => row !== undefined);
  return [...single, ...item.decisions, ...item.effects, ...item.others].sort((a, b) => a.seq - b.seq);
}

/** Visits all entries of an item, in no order and without making a list of them: for what runs over every item. */
export function eachRow(item: Item, visit: (row: Row) => void): void {
  if (item.type !== 'call') {
    visit(item.row);
    return;
  }
  for (const row of [item.before, item.after, item.failed, item.batch]) if (row !== undefined) visit(row);
  for (const list of [item.decisions, item.effects, item.others]) for (const row of list) visit(row);
}

/** Entries that a reader should look at: lines that are none, gaps, alarms, refusals. */
export function needsLook(row: Row): boolean {
  if (row.class === 'unclassified') return true;
  if (row.class === 'recorder') return row.kind === 'gap' || row.kind === 'alarm';
  return row.kind === 'rule.deny' || row.kind === 'permission.denied';
}
