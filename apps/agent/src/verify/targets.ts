// What `nd7 verify` is asked to check: a session of the home, or a log file with what lies beside it.
import { readdirSync, readFileSync, statSync, type Stats } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { parseHeadFile, type Head } from '@nd7/chain';
import { isSessionId } from '@nd7/entry';
import { Home, listSessions, readHead, readReceipts } from '@nd7/journal';
import { CliError, type Io } from '../cli/io.js';
import { safeLine } from '../show/safe.js';
import { findSession, latestSession } from '../show/target.js';

export interface TargetOptions {
  receipts?: boolean;
  all?: boolean;
  session?: string;
  head?: string;
  receipt: string[];
}

/** One log, and what it is to be held against. */
export interface Target {
  session: string;
  log: string;
  head: Head | undefined;
  receipts: Uint8Array[];
  /** It stands in the home, where a recorder may be writing it. */
  isLive: boolean;
}

/** The logs that are meant. Throws CliError 2 where there is none. */
export function findTargets(io: Io, named: string | undefined, options: TargetOptions): Target[] {
  const home = new Home(io.home);
  if (options.all === true) {
    if (
      named !== undefined ||
      options.session !== undefined ||
      options.receipt.length > 0 ||
      options.head !== undefined
    ) {
      throw new CliError(
        2,
        '--all means every session of the home: leave the session, --session, --head and --receipt out',
      );
    }
    latestSession(home); // an empty home is a mistake, not a success: ND7_HOME may be the wrong one
    return listSessions(home).map(({ session }) => fromHome(io, home, session, options));
  }
  if (named === undefined) return [fromHome(io, home, latestSession(home).session, options)];
  const path = resolve(io.cwd, named);
  const stat = statOf(path);
  const isPath =
    options.session !== undefined ||
    /[/\\]/.test(named) ||
    (stat !== undefined && !listSessions(home).some(({ session }) => session === named));
  return [isPath ? fromPath(io, path, stat, options) : fromHome(io, home, findSession(home, named).session, options)];
}

function fromHome(io: Io, home: Home, session: string, options: TargetOptions): Target {
  const head = options.head === undefined ? readHead(home, session) : headFile(io, options.head);
  if (options.head === undefined && head === undefined && statOf(home.headFile(session)) !== undefined)
    tellOfNoHead(io, home.headFile(session));
  const kept = options.receipts === true ? readReceipts(home, session).map(({ text }) => text) : [];
  return {
    session,
    log: home.logFile(session),
    head,
    receipts: [...kept, ...options.receipt.map((file) => read(io, file))],
    isLive: true,
  };
}

function fromPath(io: Io, path: string, stat: Stats | undefined, options: TargetOptions): Target {
  const shown = safeLine(path);
  if (stat === undefined)
    throw new CliError(
      2,
      `there is no ${shown}`,
      'name a session, a log file, or a folder with a log.jsonl',
      'no-file',
    );
  const log = stat.isDirectory() ? join(path, 'log.jsonl') : path;
  if (statOf(log)?.isFile() !== true)
    throw new CliError(2, `there is no log file ${safeLine(log)}`, undefined, 'no-file');
  const isStandard = basename(log) === 'log.jsonl';
  const session = options.session ?? (isStandard ? basename(dirname(log)) : undefined);
  if (session === undefined || !isSessionId(session)) {
    const why =
      session === undefined
        ? `which session is ${shown} of?`
        : `${JSON.stringify(session.slice(0, 160))} is no session id`;
    throw new CliError(2, why, 'say it with --session ID: the chain is bound to it');
  }
  const beside = join(dirname(log), 'head.json');
  const head =
    options.head !== undefined ? headFile(io, options.head) : isStandard ? optionalHead(io, beside) : undefined;
  const kept = options.receipts === true ? receiptsBeside(io, log) : [];
  return { session, log, head, receipts: [...kept, ...options.receipt.map((file) => read(io, file))], isLive: false };
}

/** A head file that was asked for must be there; one that is of no form is no head, as the format has it, and a person is told. */
function headFile(io: Io, path: string): Head | undefined {
  const head = parseHeadFile(read(io, path));
  if (head === undefined && statOf(resolve(io.cwd, path))?.isFile() === true) tellOfNoHead(io, path);
  return head;
}

/** Not in the report: its words are fixed, and say what follows from it, that the length rests on nothing. */
function tellOfNoHead(io: Io, path: string): void {
  io.err(`nd7: ${safeLine(path)} is no head file (docs/format.md): checked without it, as if none had been given`);
}

function optionalHead(io: Io, path: string): Head | undefined {
  return statOf(path)?.isFile() === true ? headFile(io, path) : undefined;
}

function receiptsBeside(io: Io, log: string): Uint8Array[] {
  const folder = join(dirname(log), 'receipts');
  if (statOf(folder)?.isDirectory() !== true) return [];
  return readdirSync(folder)
    .filter((name) => /^[1-9][0-9]{0,15}\.tlog-proof$/.test(name))
    .sort((a, b) => parseInt(a, 10) - parseInt(b, 10))
    .map((name) => read(io, join(folder, name)));
}

/** A file that the user named, or that lies beside one. Throws CliError 2 where it cannot be read. */
export function read(io: Io, path: string): Uint8Array {
  try {
    return readFileSync(resolve(io.cwd, path));
  } catch (error) {
    const why = (error as NodeJS.ErrnoException).code ?? String(error);
    throw new CliError(2, `${safeLine(path)} cannot be read: ${why}`, undefined, 'no-file');
  }
}

/** What stands at a path; undefined for nothing, and for what can be no path. */
function statOf(path: string): Stats | undefined {
  try {
    return statSync(path, { throwIfNoEntry: false });
  } catch {
    return undefined;
  }
}
