// A box that bubblewrap makes: a child of nd7's, at the terminal of nd7's, whose first process is nd7's own program.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { isatty } from 'node:tty';
import { terminalFilter, type Ended } from '@nd7/confine';
import { processFacts } from '@nd7/kernel';
import { CliError } from '../cli/io.js';
import { bwrapArguments } from './box-bwrap.js';
import type { Inside } from './box-container.js';
import { Gate, HOLD_WORD } from './box-gate.js';
import { BOX, type Door } from './door.js';
import { passSignals } from './signals.js';

/** The first descriptor behind the standard streams. */
const FILTER_FD = 3;

/** Runs a program in bubblewrap's box and answers how it ended. Throws `CliError` where bubblewrap makes none. */
export async function runBwrap(
  bwrap: string,
  { args: given }: { args: readonly string[] | undefined },
  { request, ruleset, door, words, first, shows, variables, argv, admit }: Inside,
): Promise<Ended> {
  const { nd7Home, cwd } = request;
  const filter = openFilter(door);
  let told: (pid: number) => void = () => undefined;
  const made = new Promise<number>((done) => (told = done));
  let program: Program | undefined;
  let failure: unknown;
  const gate = await Gate.open(door.path, {
    kind: 'bwrap',
    told: () => made,
    admitted: (one, pid) => {
      admit(one);
      program = new Program(pid);
    },
    refused: (error) => (failure = error),
    // A program that stops itself leaves its shell waiting for nd7; one that the terminal has stopped has gone on with nd7.
    stopped: () => (program?.isStopped === true ? process.kill(process.pid, 'SIGSTOP') : undefined),
  });
  try {
    const inside = [first, HOLD_WORD, ...words, '--', ...argv];
    const isTerminal = [0, 1, 2].some((stream) => isatty(stream));
    const options = bwrapArguments({
      ruleset,
      nd7Home,
      shows,
      cwd,
      given,
      argv: inside,
      isTerminal,
      filter: filter && FILTER_FD,
    });
    const child = spawn(join(door.path, BOX), ['outside', '--', bwrap, ...options], {
      stdio: ['inherit', 'inherit', 'inherit', ...(filter === undefined ? [] : [filter])],
      env: variables,
    });
    const failed = once(child, 'error').then(([error]) => error as Error);
    if (child.pid === undefined)
      throw new CliError(2, `${bwrap} could not be started: ${(await failed).message}`, undefined, 'no-box');
    told(child.pid);
    // Before there is a program the box is ended: nobody else has anything to end.
    let early: NodeJS.Signals | undefined;
    const release = passSignals((name) => {
      if (program?.signal(name) !== undefined) return;
      early = name;
      child.kill('SIGKILL');
    });
    const [code, signal] = (await once(child, 'close')) as [number | null, NodeJS.Signals | null];
    release();
    if (failure !== undefined) throw failure;
    if (program !== undefined) return { code, signal, failure: undefined };
    if (early !== undefined) return { code: null, signal: early, failure: undefined };
    throw new CliError(
      2,
      `${bwrap} ended with ${code ?? signal} before the program began`,
      'What it said stands above. Where this machine or a container refuses user namespaces, it makes no box.',
      'open-box',
    );
  } finally {
    if (filter !== undefined) closeSync(filter);
    gate.close();
  }
}

/** bubblewrap reads it from a descriptor; undefined on a processor that there is none for. */
function openFilter(door: Door): number | undefined {
  const bytes = terminalFilter(process.arch);
  if (bytes === undefined) return undefined;
  const path = join(door.control, 'filter');
  writeFileSync(path, bytes, { mode: 0o600, flag: 'wx' });
  return openSync(path, 'r');
}

/** The process in the box that is signalled and looked at as long as it is the same. */
class Program {
  readonly #start: string | undefined;

  constructor(private readonly pid: number) {
    this.#start = processFacts(pid)?.start;
  }

  get isStopped(): boolean {
    try {
      return this.#isThere && /^\d+ \(.*\) [Tt] /s.test(readFileSync(`/proc/${this.pid}/stat`, 'latin1'));
    } catch {
      return false;
    }
  }

  /** Undefined where there is none any more. */
  signal(name: NodeJS.Signals): true | undefined {
    try {
      return this.#isThere && process.kill(this.pid, name) ? true : undefined;
    } catch {
      return undefined;
    }
  }

  get #isThere(): boolean {
    return this.#start !== undefined && processFacts(this.pid)?.start === this.#start;
  }
}
