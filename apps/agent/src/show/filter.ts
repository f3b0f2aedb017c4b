import { CliError } from '../cli/io.js';
import type { TimelineEntry } from './entry-line.js';

/** What `nd7 log` may be asked to leave out; several of one kind mean any of them, different kinds mean all. */
export interface FilterOptions {
  class: string[];
  kind: string[];
  tool: string[];
  since?: string;
  until?: string;
  grep?: string;
}

const CLASSES = ['intent', 'effect', 'decision', 'recorder', 'unclassified'];

/** A test of entries; `line` is the entry's own text, which `--grep` looks through. Throws CliError 2 for options that mean nothing. */
export function filterOf(options: FilterOptions, now: number): (entry: TimelineEntry, line: () => string) => boolean {
  const classes = new Set(options.class.flatMap((list) => list.split(',')));
  for (const name of classes)
    if (!CLASSES.includes(name))
      throw new CliError(2, `--class ${JSON.stringify(name.slice(0, 40))}: the classes are ${CLASSES.join(', ')}`);
  const kinds = options.kind.flatMap((list) => list.split(',')).map(globOf);
  const tools = options.tool.flatMap((list) => list.split(',')).map(globOf);
  const since = options.since === undefined ? undefined : timeOf('--since', options.since, now);
  const until = options.until === undefined ? undefined : timeOf('--until', options.until, now);
  const text = options.grep?.toLowerCase();
  return (entry, line) =>
    (classes.size === 0 || classes.has(entry.class)) &&
    (kinds.length === 0 || kinds.some((kind) => kind(entry.kind ?? ''))) &&
    (tools.length === 0 || tools.some((tool) => tool(entry.tool ?? ''))) &&
    (since === undefined || (entry.time !== null && Date.parse(entry.time) >= since)) &&
    (until === undefined || (entry.time !== null && Date.parse(entry.time) <= until)) &&
    (text === undefined || (entry.text ?? '').toLowerCase().includes(text) || line().toLowerCase().includes(text));
}

/** `tool.*` and the like; case does not matter. No pattern is slow: the stars are the only special characters. */
function globOf(pattern: string): (text: string) => boolean {
  const parts = pattern.toLowerCase().split('*');
  const [first = '', ...rest] = parts;
  const last = rest.pop();
  return (given) => {
    const text = given.toLowerCase();
    if (last === undefined) return text === first;
    if (!text.startsWith(first)) return false;
    let at = first.length;
    for (const part of rest) {
      const found = text.indexOf(part, at);
      if (found < 0) return false;
      at = found + part.length;
    }
    return text.length - last.length >= at && text.endsWith(last);
  };
}

const SPANS: Record<string, number> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** A date and time, or how long ago: `2026-11-29T19:41`, `2026-11-29`, `15m`, `2h`. */
function timeOf(option: string, text: string, now: number): number {
  const ago = /^([0-9]{1,6})([smhd])$/.exec(text);
  if (ago) return now - Number(ago[1]) * (SPANS[ago[2] as string] as number);
  const time = /^\d{4}-\d\d-\d\d/.test(text) ? Date.parse(text) : NaN;
  if (Number.isNaN(time))
    throw new CliError(
      2,
      `${option} ${JSON.stringify(text.slice(0, 40))} is no time`,
      'write 2026-11-29T19:41:00Z, 2026-11-29, or how long ago: 15m, 2h, 3d',
    );
  return time;
}
