import { accessSync, closeSync, constants, openSync, readFileSync, readSync, realpathSync, statSync } from 'node:fs';
import { basename, dirname, isAbsolute, join, resolve } from 'node:path';

/** Agents that nd7 knows how to attach to for one session. */
export type AgentName = 'claude-code' | 'codex';

/** An agent in a command line. */
export interface FoundAgent {
  name: AgentName;
  /** Index of the argument after which its own begin. */
  at: number;
}

export interface Where {
  cwd: string;
  path: string;
  home: string;
}

/** Packages of each agent; those for one platform (`…-linux-x64`) belong to it. */
const PACKAGES: readonly [AgentName, string][] = [
  ['claude-code', '@anthropic-ai/claude-code'],
  ['codex', '@openai/codex'],
];
/** What a client that is one program of its own has in it, whatever it is called. Looked for where a name on the way speaks of it. */
const MARKS: readonly [AgentName, RegExp, string][] = [
  ['claude-code', /claude/i, '@anthropic-ai/claude-code'],
  ['codex', /codex/i, 'npm install -g @openai/codex'],
];
const RUNTIMES = /^(node|nodejs|bun|deno)(-?\d+)?$/;
/** Options of a runtime that take the next argument; those that run text have no file. */
const WITH_VALUE = /^(-r|--require|--import|--loader|--experimental-loader|-C|--conditions|--env-file|--preload)$/;
const RUNS_TEXT = /^(-e|--eval|-p|--print|-pe)$/;
/** Programs that fetch a package and run it, and how they are told to. */
const RUNNERS = /^(npx|pnpx|bunx|npx-cli\.js|pnpx\.cjs)$/;
const MANAGERS = /^(npm|pnpm|yarn|bun|npm-cli\.js|pnpm\.cjs)$/;
const MANAGER_COMMANDS = /^(exec|dlx|x)$/;
/** Options of theirs that take the next argument; npx takes it for `--no` too. */
const RUNNER_WITH_VALUE =
  /^(-p|--package|--no|--cache|--userconfig|--registry|--loglevel|--prefix|--shell|-w|--workspace|-n|--node-arg)$/;
const MAX_DEPTH = 4;
const CHUNK = 8 << 20;
const MAX_SCRIPT = 64 << 10;

/**
 * Finds the agent that a command starts, by what the program's file is: the package that it belongs to, the script that a runtime, a package
 * runner or a shell wrapper starts, or what is written in a program of its own. Undefined where it is none that is known here.
 */
export function findAgent(argv: readonly string[], where: Where): FoundAgent | undefined {
  return agentAt(argv, 0, where, MAX_DEPTH);
}

function agentAt(argv: readonly string[], at: number, where: Where, depth: number): FoundAgent | undefined {
  const word = argv[at];
  const file = word === undefined || depth === 0 ? undefined : findProgram(word, where);
  if (word === undefined || file === undefined) return undefined;
  const names = [basename(word), basename(file)];
  if (names.includes('env')) return agentAt(argv, commandOfEnv(argv, at + 1), where, depth - 1);
  if (names.some((name) => RUNNERS.test(name))) return agentOfRunner(argv, at + 1, where, depth);
  if (names.some((name) => MANAGERS.test(name)) && MANAGER_COMMANDS.test(argv[at + 1] ?? '')) {
    const found = agentOfRunner(argv, at + 2, where, depth);
    // npm takes options that follow the command for its own, unless -- stands before it.
    const isNpm = names.some((name) => /^npm\b/.test(name));
    return isNpm && !argv.slice(at + 2, found?.at).includes('--') ? undefined : found;
  }
  if (names.some((name) => RUNTIMES.test(name))) return agentOfScript(argv, at + 1, where, depth);
  return agentOfFile(file, word, at, where, depth);
}

/** `node [options] script …`. */
function agentOfScript(argv: readonly string[], from: number, where: Where, depth: number): FoundAgent | undefined {
  let at = from;
  for (; argv[at]?.startsWith('-') === true; at++) {
    const option = argv[at] as string;
    if (RUNS_TEXT.test(option)) return undefined;
    if (WITH_VALUE.test(option)) at++;
  }
  const script = argv[at];
  const file = script === undefined ? undefined : realFile(resolve(where.cwd, script));
  return file === undefined ? undefined : agentOfFile(file, script as string, at, where, depth - 1);
}

/** `npx [options] [--package spec] command …`: the package is fetched when it runs, so that its name is what there is. */
function agentOfRunner(argv: readonly string[], from: number, where: Where, depth: number): FoundAgent | undefined {
  let at = from;
  let spec: string | undefined;
  for (; argv[at]?.startsWith('-') === true; at++) {
    const option = argv[at] as string;
    if (/^(-c|--call)(=|$)/.test(option)) return undefined;
    if (option === '-p' || option === '--package') spec = argv[at + 1];
    else if (option.startsWith('--package=')) spec = option.slice('--package='.length);
    if (RUNNER_WITH_VALUE.test(option)) at++;
  }
  const command = argv[at];
  if (command === undefined) return undefined;
  const name = agentOfPackage((spec ?? command).replace(/(?<=.)@[^/]*$/, ''));
  if (name !== undefined) return { name, at };
  const local = realFile(join(where.cwd, 'node_modules/.bin', command));
  return local === undefined ? undefined : agentOfFile(local, command, at, where, depth - 1);
}

function agentOfFile(file: string, word: string, at: number, where: Where, depth: number): FoundAgent | undefined {
  const byPackage = agentOfPackage(packageOf(file));
  if (byPackage !== undefined) return { name: byPackage, at };
  const head = headOf(file);
  if (head.startsWith('#!')) {
    const next = wrapped(file, head, where.home);
    // A wrapper hands its own arguments on.
    const inner = next === undefined || depth === 0 ? undefined : agentAt([next], 0, where, depth - 1);
    return inner === undefined ? undefined : { name: inner.name, at };
  }
  const mark = MARKS.find(([, hint, text]) => (hint.test(word) || hint.test(file)) && isWrittenIn(file, text));
  return mark === undefined ? undefined : { name: mark[0], at };
}

function agentOfPackage(name: string | undefined): AgentName | undefined {
  return PACKAGES.find(([, own]) => name === own || name?.startsWith(`${own}-`) === true)?.[0];
}

/** The package that a file belongs to: what the nearest package.json above it says. */
function packageOf(file: string): string | undefined {
  for (let folder = dirname(file); folder !== dirname(folder); folder = dirname(folder)) {
    try {
      const { name } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as { name?: unknown };
      return typeof name === 'string' ? name : undefined;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') return undefined;
    }
  }
  return undefined;
}

/** The program that a small shell wrapper becomes: `exec "/path/to/it" "$@"`. */
function wrapped(file: string, head: string, home: string): string | undefined {
  if (!/^#!.*\b(sh|bash|zsh|dash)\b/.test(head)) return undefined;
  const text = readFileSync(file, 'utf8').slice(0, MAX_SCRIPT);
  const target = /^\s*exec\s+(["']?)([^\s"']+)\1\s.*"\$@"/m
    .exec(text)?.[2]
    ?.replace(/^(~|\$HOME|\$\{HOME\})(?=\/)/, home);
  return target !== undefined && isAbsolute(target) ? target : undefined;
}

/** The file that a word starts, links followed. */
function findProgram(word: string, { cwd, path }: Where): string | undefined {
  if (word.includes('/')) return realFile(resolve(cwd, word));
  for (const folder of path.split(':')) {
    const file = realFile(resolve(cwd, folder, word));
    if (file !== undefined && isRun(file)) return file;
  }
  return undefined;
}

function realFile(path: string): string | undefined {
  try {
    const real = realpathSync(path);
    return statSync(real).isFile() ? real : undefined;
  } catch {
    return undefined;
  }
}

function isRun(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

function headOf(file: string): string {
  return (
    withFile(file, (fd) => {
      const bytes = Buffer.alloc(128);
      return bytes.toString('latin1', 0, readSync(fd, bytes));
    }) ?? ''
  );
}

/** Whether a text stands in a file; some hundred megabytes take a tenth of a second. */
function isWrittenIn(file: string, text: string): boolean {
  return (
    withFile(file, (fd) => {
      const bytes = Buffer.alloc(CHUNK + text.length);
      for (let kept = 0; ;) {
        const read = readSync(fd, bytes, kept, CHUNK, null);
        if (read === 0) return false;
        if (bytes.subarray(0, kept + read).includes(text)) return true;
        // What is looked for may lie across two pieces.
        bytes.copyWithin(0, Math.max(0, kept + read - text.length), kept + read);
        kept = Math.min(text.length, kept + read);
      }
    }) ?? false
  );
}

function withFile<T>(file: string, use: (fd: number) => T): T | undefined {
  let fd: number | undefined;
  try {
    fd = openSync(file, 'r');
    return use(fd);
  } catch {
    return undefined; // not to be read: then it is not known
  } finally {
    if (fd !== undefined) closeSync(fd);
  }
}

/** Index of the command that env starts, behind its options and assignments. */
function commandOfEnv(argv: readonly string[], from: number): number {
  let at = from;
  for (; /^(-|\w+=)/.test(argv[at] ?? ''); at++) if (/^-[uC]$/.test(argv[at] as string)) at++;
  return at;
}
