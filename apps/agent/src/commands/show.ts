import type { Detached, EntryView } from '@nd7/entry';
import type { Command } from 'commander';
import { CliError, type Io } from '../cli/io.js';

interface ShowOptions {
  raw?: boolean;
  detached?: boolean;
}

/** `nd7 show`: one entry, whole. */
export function register(program: Command, io: Io): void {
  program
    .command('show')
    .description('show one entry of a session, whole')
    .argument('<session>', 'a session id or its beginning')
    .argument('<entry>', 'its number (seq); negative counts from the end: -1 is the last')
    .option('--raw', 'the exact bytes of the line and nothing else')
    .option('--detached', 'also the detached values that this machine keeps')
    .action((session: string, entry: string, options: ShowOptions) => show(io, session, entry, options));
}

export async function show(io: Io, named: string, which: string, options: ShowOptions): Promise<void> {
  const { Home, SessionReader } = await import('@nd7/journal');
  const { blake3Hex } = await import('@nd7/blake3');
  const { readEntry } = await import('@nd7/entry');
  const { findSession } = await import('../show/target.js');
  const { timelineEntry } = await import('../show/entry-line.js');
  const home = new Home(io.home);
  const { session } = findSession(home, named);
  const reader = new SessionReader(home, session);
  let line: Uint8Array;
  let seq: number;
  let related: Related[];
  try {
    const count = reader.entries();
    seq = numberOf(which, count, session);
    line = reader.range(seq, seq + 1).subarray(0, -1);
    if (options.raw === true && !io.isJson) return raw(io, line);
    related = await relatedTo(reader, seq, readEntry(line), count);
  } finally {
    reader.close();
  }
  const view = readEntry(line);
  const hash = blake3Hex(line);
  const values = await detachedValues(home, view.detached ?? [], options.detached === true);
  if (io.isJson) {
    const data = view.data === undefined ? null : (JSON.parse(view.data) as unknown);
    const entry = { ...timelineEntry(seq, view), prev: view.prev ?? null, hash, peer: view.peer ?? null, data };
    io.json({ session, entry, detached: values, related, line: Buffer.from(line).toString('utf8') });
    return;
  }
  await print(io, session, seq, view, hash, values, related);
}

function numberOf(text: string, count: number, session: string): number {
  if (!/^-?[0-9]{1,15}$/.test(text)) throw new CliError(2, `${JSON.stringify(text.slice(0, 40))} is no entry number`);
  const seq = Number(text) < 0 ? count + Number(text) : Number(text);
  if (seq >= 0 && seq < count) return seq;
  const range = count === 0 ? 'it has no entries' : `its entries are 0 to ${String(count - 1)}`;
  throw new CliError(2, `there is no entry ${text} in ${session}: ${range}`, undefined, 'no-entry');
}

/** The bytes as they are, for `b3sum` and the like; a terminal gets them made safe, because they are an agent's. */
async function raw(io: Io, line: Uint8Array): Promise<void> {
  if (!io.isTerminal) {
    process.stdout.write(line);
    return;
  }
  const { safeLine } = await import('../show/safe.js');
  io.out(safeLine(Buffer.from(line).toString('utf8'), (box) => io.paint('yellow', box)));
}

interface Related {
  seq: number;
  kind: string | null;
  time: string | null;
}

/** How far around an entry its call's other entries are looked for. */
const NEAR = 512;
const BLOCK = 64;

/** Entries of the same tool call nearby. */
async function relatedTo(
  reader: import('@nd7/journal').SessionReader,
  seq: number,
  view: EntryView,
  count: number,
): Promise<Related[]> {
  const { readEntry } = await import('@nd7/entry');
  const { describeEntry } = await import('@nd7/hooks');
  const id = describeEntry(view).toolUseId;
  if (id === undefined) return [];
  const found: Related[] = [];
  const end = Math.min(count, seq + NEAR);
  // Block by block: a reader knows where every 64th entry begins, and would count its way to each single one.
  for (let from = Math.max(0, seq - NEAR); from < end; from += BLOCK - (from % BLOCK)) {
    const block = Buffer.from(reader.range(from, Math.min(end, from + BLOCK - (from % BLOCK))));
    let at = from;
    for (let start = 0, stop = block.indexOf(10); stop >= 0; at++, start = stop + 1, stop = block.indexOf(10, start)) {
      const line = block.subarray(start, stop);
      if (at === seq || !line.includes(id)) continue;
      const other = readEntry(line);
      if (describeEntry(other).toolUseId === id)
        found.push({ seq: at, kind: other.kind ?? null, time: other.time ?? null });
    }
  }
  return found;
}

interface DetachedValue extends Detached {
  /** `kept`: the value is here and is the one the entry names. */
  state: 'kept' | 'missing' | 'differs';
  /** The exact JSON text, where it was asked for and is kept. */
  value?: string;
}

async function detachedValues(
  home: import('@nd7/journal').Home,
  list: readonly Detached[],
  wanted: boolean,
): Promise<DetachedValue[]> {
  const { readBlob } = await import('@nd7/journal');
  return Promise.all(
    list.map(async (one) => {
      const blob = await readBlob(home, one.blake3);
      if (typeof blob === 'string') return { ...one, state: blob };
      return { ...one, state: 'kept' as const, ...(wanted && { value: Buffer.from(blob.value).toString('utf8') }) };
    }),
  );
}

async function print(
  io: Io,
  session: string,
  seq: number,
  view: EntryView,
  hash: string,
  values: readonly DetachedValue[],
  related: readonly Related[],
): Promise<void> {
  const { safeLine, safeText } = await import('../show/safe.js');
  const box = (text: string) => io.paint('yellow', text);
  const row = (name: string, value: string) => io.out(`${io.paint('dim', name.padEnd(9))} ${value}`);
  io.out(
    `${io.paint('bold', `entry ${String(seq)}`)} of session ${session}${io.paint('dim', '  as recorded, not verified')}`,
  );
  row('time', view.time ?? 'none of its form');
  row(
    'class',
    view.class === 'unclassified' ? `unclassified: ${String(view.problem)} is not of its form` : MEANING[view.class],
  );
  row('source', view.source ?? 'none of its form');
  row('kind', view.kind ?? 'none of its form');
  row('prev', view.prev ?? 'none of its form');
  row('hash', hash);
  if (view.peer !== undefined) row('peer', safeLine(JSON.stringify(view.peer), box));
  for (const { seq: other, kind, time } of related)
    row('same call', `entry ${String(other)}  ${kind ?? '?'}  ${time ?? ''}`);
  for (const value of values) {
    const size = value.bytes === undefined ? '' : `, ${String(value.bytes)} bytes`;
    const where = {
      kept: 'kept here',
      missing: 'not on this machine',
      differs: 'the blob here is NOT the value the entry names',
    }[value.state];
    row('detached', `${safeLine(value.at, box)}: ${value.why}${size}; ${where}`);
    if (value.shown !== undefined) row('', `shown: ${safeLine(value.shown, box)}`);
    if (value.value !== undefined) io.out(indent(safeText(pretty(value.value), box)));
  }
  if (view.data !== undefined) {
    io.out(io.paint('dim', 'data'));
    io.out(indent(safeText(pretty(view.data), box)));
  }
}

const MEANING = {
  intent: 'intent: what an agent said; no proof of what ran',
  effect: 'effect: what a layer outside the agent saw happen',
  decision: 'decision: what a rule or a person decided',
  recorder: 'recorder: the recorder about itself',
} as const;

const indent = (text: string) => text.replace(/^/gm, '  ');

/** JSON laid out over lines without touching its tokens: numbers keep their digits, strings their spelling. */
function pretty(json: string): string {
  let out = '';
  let depth = 0;
  const line = () => `\n${'  '.repeat(depth)}`;
  for (const [token] of json.matchAll(/"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s{}[\],:"]+/gs)) {
    if (token === '{' || token === '[') {
      depth++;
      out += token + line();
    } else if (token === '}' || token === ']') {
      depth--;
      out = `${out.endsWith(`${token === '}' ? '{' : '['}\n${'  '.repeat(depth + 1)}`) ? out.trimEnd() : out + line()}${token}`;
    } else if (token === ',') out += `,${line()}`;
    else out += token === ':' ? ': ' : token;
  }
  return out;
}
