// What a command may do with the terminal. Commands never touch process.stdout themselves, so that `--json`, colour,
// progress and broken pipes behave the same everywhere and tests can run a command in-process.
import type { ChildProcess } from 'node:child_process';
import { isatty } from 'node:tty';
import { styleText } from 'node:util';
import { nd7Home } from '../recorder/home-path.js';

/** Exit codes that scripts may rely on: 0 fine, 1 the verdict is bad or the work failed, 2 usage or unsupported. */
export type ExitCode = 0 | 1 | 2;

/** A failure whose message is for the user: what is wrong, where; `hint` says what to do next. Never shown with a stack. */
export class CliError extends Error {
  constructor(
    readonly exitCode: Exclude<ExitCode, 0>,
    message: string,
    readonly hint?: string,
    /** Stable word for `--json` readers. */
    readonly code: string = exitCode === 2 ? 'usage' : 'failed',
  ) {
    super(message);
    this.name = 'CliError';
  }
}

export type Style = 'bold' | 'dim' | 'red' | 'green' | 'yellow' | 'blue' | 'cyan' | 'magenta' | 'underline';

/** One line of progress on stderr, redrawn in place; silent when stderr is no terminal or `--json` is on. */
export interface Progress {
  /** `done` and `total` in the unit named; total undefined: unknown. */
  update(done: number, total?: number): void;
  end(): void;
}

/** The process that a shell waits for, where it is not this one: docs/protocol/session-host.md. */
export interface RemoteFront {
  /** Has it start the launcher. */
  readonly start: (launcher: string) => ChildProcess;
  /** Resolves when all that was printed so far is on the terminal. */
  printed(): Promise<void>;
  /** It ends as the program ended, when all is done here. */
  end(by: { code: number | null; signal: NodeJS.Signals | null }): void;
  /** It ends so at once: what is still to be done for the session is done without it. Resolves when it has been told. */
  release(by: { code: number | null; signal: NodeJS.Signals | null }): Promise<void>;
  /** Does something that is better done when no session is about to start. */
  later(work: () => void): void;
}

export interface Io {
  /** Where nd7 keeps everything: ND7_HOME or ~/.nd7, absolute. */
  readonly home: string;
  readonly isJson: boolean;
  /** True when stdout is a terminal that a person reads. */
  readonly isTerminal: boolean;
  /** Width of stdout in columns (80 where unknown). */
  readonly columns: number;
  out(line?: string): void;
  err(line?: string): void;
  /** The one JSON object of a `--json` run (snake_case fields). */
  json(value: unknown): void;
  paint(style: Style | Style[], text: string): string;
  progress(label: string, unit?: 'bytes' | 'entries' | 'items'): Progress;
  /** Exit code of a run that printed its own result, such as a bad verdict. The highest one wins. */
  setExit(code: ExitCode): void;
  readonly env: NodeJS.ProcessEnv;
  readonly cwd: string;
  /** Whether a standard stream of the person's is a terminal. */
  isTty(fd: 0 | 1 | 2): boolean;
  /** The terminal's bell. */
  ring(): void;
  readonly front?: RemoteFront;
}

function wantsColour(stream: NodeJS.WriteStream, env: NodeJS.ProcessEnv): boolean {
  if (env['NO_COLOR'] !== undefined && env['NO_COLOR'] !== '') return false;
  if (env['FORCE_COLOR'] !== undefined && env['FORCE_COLOR'] !== '0') return true;
  return stream.isTTY === true && env['TERM'] !== 'dumb';
}

const UNITS = ['B', 'kB', 'MB', 'GB', 'TB'];
/** 1,000-based, three significant digits: `1.23 MB`. */
export function formatBytes(bytes: number): string {
  let value = bytes;
  let unit = 0;
  while (value >= 1000 && unit < UNITS.length - 1) {
    value /= 1000;
    unit += 1;
  }
  return `${unit === 0 ? value : value.toPrecision(3)} ${UNITS[unit] ?? 'B'}`;
}

/** The Io of a real run. */
export function systemIo(isJson: boolean): Io & { exitCode(): ExitCode } {
  const env = process.env;
  const colour = !isJson && wantsColour(process.stdout, env);
  let exit: ExitCode = 0;
  return {
    home: nd7Home(env),
    isJson,
    isTerminal: process.stdout.isTTY === true,
    columns: process.stdout.columns ?? 80,
    env,
    cwd: process.cwd(),
    isTty: (fd) => isatty(fd),
    ring: () => void process.stderr.write('\u0007'),
    out: (line = '') => void process.stdout.write(line + '\n'),
    err: (line = '') => void process.stderr.write(line + '\n'),
    json: (value) => void process.stdout.write(JSON.stringify(value) + '\n'),
    paint: (style, text) => (colour ? styleText(style, text) : text),
    progress: (label, unit = 'items') => progressLine(label, unit, !isJson && process.stderr.isTTY === true),
    setExit: (code) => {
      if (code > exit) exit = code;
    },
    exitCode: () => exit,
  };
}

function progressLine(label: string, unit: 'bytes' | 'entries' | 'items', visible: boolean): Progress {
  let last = 0;
  const show = (n: number) =>
    unit === 'bytes' ? formatBytes(n) : `${n.toLocaleString('en')} ${unit === 'items' ? '' : unit}`.trim();
  return {
    update(done, total) {
      const now = performance.now();
      if (!visible || now - last < 100) return;
      last = now;
      const share = total !== undefined && total > 0 ? ` ${Math.floor((done / total) * 100)} %` : '';
      process.stderr.write(
        `\r\x1b[K${label}${share} (${show(done)}${total === undefined ? '' : ` of ${show(total)}`})`,
      );
    },
    end() {
      if (visible && last > 0) process.stderr.write('\r\x1b[K');
    },
  };
}
