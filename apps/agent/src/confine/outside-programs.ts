// Programs that nd7 itself runs outside while a session lives: none that somebody inside may have put there, and those that were there when it began.
import { accessSync, closeSync, constants, openSync, readSync, statSync } from 'node:fs';
import { basename, delimiter, isAbsolute, join } from 'node:path';
import type { Ruleset } from '@nd7/policy';
import { reasonOf } from '../cli/full-disk.js';
import { OWN_PROGRAMS } from './own-program.js';
import { Reach } from './reach.js';
import type { RunRecord } from './record.js';
import type { RunRequest } from './session-request.js';

/** A command as it may run now: the program by its whole path, and an environment in which nothing names what a session may write. */
export interface Ready {
  program: string;
  args: string[];
  environment: NodeJS.ProcessEnv;
}

/** What shows a notification, and where a desktop has it. Not PATH: what that names first may be a folder of the project. */
export const NOTIFIER = 'notify-send';
const DESKTOP_FOLDERS = ['/usr/bin', '/bin', '/usr/local/bin', '/run/current-system/sw/bin'];

/** As many interpreters as the kernel follows (binfmt_script: BINPRM_MAX_RECURSION). */
const MOST_INTERPRETERS = 5;
/** The kernel reads so much of a first line (BINPRM_BUF_SIZE). */
const FIRST_LINE = 256;

/** A program and its interpreters as they were found, or why none was. */
type Known = { program: string; files: Identity[] } | { why: string };

interface Identity {
  path: string;
  /** What changes with the file: it cannot be set back by who writes (ctime). */
  mark: string;
}

/** The programs that nd7 runs outside during one session. Each is looked for when the session begins, and looked at again before it runs. */
export class OutsidePrograms {
  /** What of the credentials will not be read by what is known when the session begins, each in a sentence. */
  readonly problems: string[] = [];
  readonly #known = new Map<string, Known>();

  constructor(
    readonly reach: Reach,
    private readonly environment: NodeJS.ProcessEnv,
  ) {}

  /** Those of a ruleset's credentials, and the desktop's. */
  static of(ruleset: Ruleset, reach: Reach, environment: NodeJS.ProcessEnv): OutsidePrograms {
    const programs = new OutsidePrograms(reach, environment);
    for (const { name, from } of ruleset.network.credentials) {
      try {
        if ('file' in from) programs.refuseOpenFile(from.file);
        if (!('command' in from)) continue;
        programs.find(from.command[0] ?? '');
        programs.ready(from.command);
      } catch (error) {
        programs.problems.push(`the credential ${name} will not be read: ${textOf(error)}`);
      }
    }
    if (environment['DBUS_SESSION_BUS_ADDRESS'] !== undefined) programs.find(NOTIFIER, DESKTOP_FOLDERS);
    return programs;
  }

  /** Finds a program, in `folders` where it has no path, and keeps what it is: only that runs later. */
  find(name: string, folders: readonly string[] = foldersOf(this.environment)): void {
    try {
      const isOpen = this.reach.asker();
      const program = locate(name, folders, isOpen);
      this.#known.set(name, { program, files: filesOf(program, foldersOf(this.environment), isOpen) });
    } catch (error) {
      this.#known.set(name, { why: textOf(error) });
    }
  }

  /**
   * A command as it may run at this moment. Throws an Error that says what is against it: its program, an interpreter of that or a path among its arguments
   * lies where this or another session may write or was ever let write, or is not what it was when the session began. It has to be started without waiting
   * for anything, or the answer is old.
   */
  ready([name = '', ...args]: readonly string[]): Ready {
    const known = this.#known.get(name) ?? { why: `the command ${name} was not looked for when the session began` };
    if ('why' in known) throw new Error(known.why);
    const isOpen = this.reach.asker();
    for (const { path, mark } of known.files) {
      refuseOpen(path, isOpen);
      if (markOf(path) !== mark)
        throw new Error(`the command ${name} is not run: ${path} is not what it was when the session began`);
    }
    const named = args.find((arg) => this.#namesOpen(arg, isOpen));
    if (named !== undefined)
      throw new Error(`the command ${name} is not run: its argument ${named} names what a session may write to`);
    return { program: known.program, args, environment: this.#environment(isOpen) };
  }

  /** Throws an Error where a session may put another file in the place of this one. */
  refuseOpenFile(path: string): void {
    if (this.reach.isOpen(path)) throw new Error(`the file ${path} is not read: a session may write to it`);
  }

  /** Without the folders of PATH that a session may write to, and without variables that name such a place: they may load code. */
  #environment(isOpen: (path: string) => boolean): NodeJS.ProcessEnv {
    const kept = Object.entries(this.environment).filter(
      ([name, value]) => name !== 'PATH' && !this.#namesOpen(value ?? '', isOpen),
    );
    const path = foldersOf(this.environment).filter((folder) => !isOpen(folder));
    return { ...Object.fromEntries(kept), PATH: path.join(delimiter) };
  }

  /** Whether one of the paths in a text is open; commands run in `/`, where those that are not absolute begin. */
  #namesOpen(text: string, isOpen: (path: string) => boolean): boolean {
    const home = this.environment['HOME'] ?? '/';
    return text
      .replace(/(?<=^|[\s:=,'"])(~|\$HOME|\$\{HOME\})(?=\/|$)/g, home)
      .split(/[\s:;,=@'"()<>|&`]+/)
      .filter((piece) => piece.includes('/'))
      .some((piece) => isOpen(`/${piece}`));
  }
}

/** The folders of PATH; those that are not absolute mean another place in every folder. */
function foldersOf(environment: NodeJS.ProcessEnv): string[] {
  return (environment['PATH'] ?? '').split(delimiter).filter((folder) => isAbsolute(folder));
}

/** Throws an Error that says why there is none. */
function locate(name: string, folders: readonly string[], isOpen: (path: string) => boolean): string {
  if (name.includes('/')) {
    if (!isAbsolute(name)) throw new Error(`the command ${name} is not run: its path is not absolute`);
    refuseOpen(name, isOpen);
    if (!isProgram(name)) throw new Error(`the command ${name} is not there`);
    return name;
  }
  const found = folders.filter((folder) => !isOpen(folder)).map((folder) => join(folder, name));
  const program = found.find((path) => isProgram(path) && !isOpen(path));
  if (program === undefined)
    throw new Error(`the command ${name} is in no folder of PATH that sessions cannot write to`);
  return program;
}

function refuseOpen(path: string, isOpen: (path: string) => boolean): void {
  if (isOpen(path)) throw new Error(`the command ${path} is not run: a session may write to it`);
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}

/** A program and what the kernel starts in its place: the interpreters of its first line, and what `env` looks for there. */
function filesOf(program: string, folders: readonly string[], isOpen: (path: string) => boolean): Identity[] {
  const files: Identity[] = [];
  for (let path: string | undefined = program; path !== undefined && files.length < MOST_INTERPRETERS;) {
    refuseOpen(path, isOpen);
    files.push({ path, mark: markOf(path) });
    const [interpreter, ...words] = firstLine(path);
    if (interpreter === undefined) break;
    path = join('/', interpreter);
    if (basename(path) !== 'env') continue;
    refuseOpen(path, isOpen);
    files.push({ path, mark: markOf(path) });
    const name = words.find((word) => !word.startsWith('-') && !word.includes('='));
    path = name === undefined ? undefined : locate(name, folders, isOpen);
  }
  return files;
}

/** The words after `#!`; none where a file begins with something else or cannot be read. */
function firstLine(path: string): string[] {
  let fd: number;
  try {
    fd = openSync(path, 'r');
  } catch {
    return [];
  }
  try {
    const bytes = Buffer.alloc(FIRST_LINE);
    const [line = ''] = bytes.toString('latin1', 0, readSync(fd, bytes, 0, FIRST_LINE, 0)).split('\n');
    return line.startsWith('#!')
      ? line
          .slice(2)
          .trim()
          .split(/[ \t]+/)
      : [];
  } finally {
    closeSync(fd);
  }
}

function textOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

function markOf(path: string): string {
  const found = statSync(path, { bigint: true, throwIfNoEntry: false });
  if (found === undefined) return 'none';
  const { dev, ino, size, mode, uid, mtimeNs, ctimeNs } = found;
  return [dev, ino, size, mode, uid, mtimeNs, ctimeNs].join();
}

/** The part of nd7's own program that a session may write; where it cannot be known of the others, by what this one may. */
function ownOpen(reach: Reach): string | undefined {
  try {
    return OWN_PROGRAMS.find(reach.asker());
  } catch {
    return OWN_PROGRAMS.find((path) => reach.isOpenToOwn(path));
  }
}

/** The programs of a session that begins. Says what of them will not run, and where nd7's own lie open: what the session makes of those runs outside, at the next command at the latest. */
export async function openOutside(
  { nd7Home, ruleset, environment, warn }: RunRequest,
  record: RunRecord,
): Promise<OutsidePrograms> {
  let reach: Reach;
  try {
    reach = Reach.open(nd7Home, record.id, ruleset);
  } catch (error) {
    warn(`other sessions do not know what this one may write: ${reasonOf(error, nd7Home)}`);
    reach = Reach.alone(ruleset);
  }
  const programs = OutsidePrograms.of(ruleset, reach, environment);
  for (const problem of programs.problems) warn(problem);
  const path = ownOpen(reach);
  if (path !== undefined) {
    warn(`nd7 itself lies where a session may write (${path}): what it changes there runs outside`);
    await record.note('alarm', { reason: 'own program open', path }, 'that nd7’s own program can be changed');
  }
  return programs;
}
