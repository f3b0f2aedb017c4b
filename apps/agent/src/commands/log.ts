import type { Command } from 'commander';
import { CliError, type Io } from '../cli/io.js';
import type { FilterOptions } from '../show/filter.js';
import type { TimelineEntry } from '../show/entry-line.js';

export interface LogOptions extends FilterOptions {
  follow?: boolean;
  tail?: number;
  utc?: boolean;
}

const more = (value: string, all: string[]) => [...all, value];

/** `nd7 log`: a session as a readable timeline. It shows what the file says; `nd7 verify` says whether to believe it. */
export function register(program: Command, io: Io): void {
  program
    .command('log')
    .description('show a session as a timeline (as recorded: `nd7 verify` checks it)')
    .argument('[session]', 'a session id or its beginning (default: the session written last)')
    .option('-f, --follow', 'go on with what is recorded from now on, until Ctrl-C')
    .option('-n, --tail <n>', 'only the last n entries that pass the filters', wholeNumber)
    .option(
      '-c, --class <class>',
      'only intent, decision, effect, recorder or unclassified (may be repeated)',
      more,
      [],
    )
    .option('-k, --kind <kind>', 'only this kind, * for any letters: tool.* (may be repeated)', more, [])
    .option('-t, --tool <tool>', 'only calls of this tool, * for any letters: mcp__* (may be repeated)', more, [])
    .option('--since <time>', 'not before a time (2026-11-29T19:41Z) or so long ago (15m, 2h, 3d)')
    .option('--until <time>', 'not after a time')
    .option('-g, --grep <text>', 'only entries that contain a text')
    .option('--utc', 'times in UTC instead of local time')
    .action((named: string | undefined, options: LogOptions) => log(io, named, options));
}

function wholeNumber(text: string): number {
  if (!/^[0-9]{1,9}$/.test(text))
    throw new CliError(2, `--tail must be a number, not ${JSON.stringify(text.slice(0, 40))}`);
  return Number(text);
}

/** The command's work. `stop` ends following; tests give one, the terminal's Ctrl-C does it otherwise. */
export async function log(io: Io, named: string | undefined, options: LogOptions, stop?: AbortSignal): Promise<void> {
  const { Home } = await import('@nd7/journal');
  const { readEntry } = await import('@nd7/entry');
  const { findSession, latestSession } = await import('../show/target.js');
  const { timelineEntry, printedLine } = await import('../show/entry-line.js');
  const { LineCutter } = await import('../show/lines.js');
  const { filterOf } = await import('../show/filter.js');
  const { openLog, readRange } = await import('../verify/read.js');

  const home = new Home(io.home);
  const { session } = named === undefined ? latestSession(home) : findSession(home, named);
  const passes = filterOf(options, Date.now());
  const clock = clockOf(options.utc === true);
  const show = printer(io, session, options, (entry) => printedLine(io, entry, clock.time), clock.day);
  const tail: TimelineEntry[] = [];
  const wanted = options.tail;
  const cutter = new LineCutter();
  // Before anything is printed: whoever has seen the first line may press Ctrl-C.
  const end = options.follow === true ? (stop ?? interrupted()) : undefined;
  const file = await openLog(home.logFile(session));
  try {
    let at = 0;
    const advance = async (take: (entry: TimelineEntry) => void) => {
      const { size } = await file.stat();
      if (size < at)
        throw new CliError(1, `the log of ${session} became shorter while it was followed`, '`nd7 verify` it');
      for await (const chunk of readRange(file, at, size)) {
        at += chunk.length;
        for (const { seq, bytes, isTooLong } of cutter.push(chunk)) {
          const entry = timelineEntry(seq, isTooLong ? { class: 'unclassified', problem: 'json' } : readEntry(bytes));
          if (passes(entry, () => Buffer.from(bytes).toString('utf8'))) take(entry);
        }
      }
    };
    await advance((entry) => {
      if (wanted === undefined) show.entry(entry);
      else if (tail.push(entry) > wanted) tail.shift();
    });
    tail.forEach(show.entry);
    if (end !== undefined) await follow(() => advance(show.entry), end);
    show.end();
  } finally {
    await file.close();
  }
}

/** How often a followed log is looked at. */
const LOOK_MS = 250;

async function follow(advance: () => Promise<void>, stop: AbortSignal): Promise<void> {
  while (!stop.aborted) {
    await new Promise<void>((resolve) => {
      const timer = setTimeout(done, LOOK_MS);
      function done() {
        clearTimeout(timer);
        stop.removeEventListener('abort', done);
        resolve();
      }
      stop.addEventListener('abort', done);
    });
    await advance();
  }
}

/** Ctrl-C ends following as it should end: with what is open closed, and exit 0. */
function interrupted(): AbortSignal {
  const controller = new AbortController();
  process.once('SIGINT', () => controller.abort());
  return controller.signal;
}

interface Printer {
  entry(entry: TimelineEntry): void;
  end(): void;
}

/** Text, or one JSON object; a followed log is one JSON object a line, because it has no end. */
function printer(
  io: Io,
  session: string,
  options: LogOptions,
  line: (entry: TimelineEntry) => string,
  dayOf: (time: string) => string,
): Printer {
  if (io.isJson) {
    const entries: TimelineEntry[] = [];
    if (options.follow === true) return { entry: (entry) => io.json(entry), end: () => undefined };
    return { entry: (entry) => void entries.push(entry), end: () => io.json({ session, entries }) };
  }
  let shown = 0;
  let day = '';
  io.out(`session ${session}${io.paint('dim', '  as recorded, not verified: nd7 verify ' + session)}`);
  return {
    entry(entry) {
      shown++;
      const today = entry.time === null ? day : dayOf(entry.time);
      if (today !== day) io.out(io.paint('bold', (day = today)));
      io.out(line(entry));
    },
    end() {
      if (shown === 0) io.out(hasFilters(options) ? 'no entry passes the filters' : 'no entries yet');
    },
  };
}

function hasFilters({ class: classes, kind, tool, since, until, grep }: LogOptions): boolean {
  return [...classes, ...kind, ...tool, since, until, grep].some((one) => one !== undefined);
}

function clockOf(isUtc: boolean): { time: (time: string) => string; day: (time: string) => string } {
  const two = (n: number) => String(n).padStart(2, '0');
  if (isUtc) return { time: (time) => time.slice(11, 19), day: (time) => `${time.slice(0, 10)} UTC` };
  return {
    time(time) {
      const at = new Date(time);
      return `${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`;
    },
    day(time) {
      const at = new Date(time);
      const minutes = -at.getTimezoneOffset();
      const zone = `UTC${minutes < 0 ? '-' : '+'}${two(Math.floor(Math.abs(minutes) / 60))}:${two(Math.abs(minutes) % 60)}`;
      return `${String(at.getFullYear())}-${two(at.getMonth() + 1)}-${two(at.getDate())} ${zone}`;
    },
  };
}
