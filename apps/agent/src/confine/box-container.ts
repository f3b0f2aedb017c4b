// A box that a container engine makes: started by its client, told of by its daemon, ended by it or by the gate that hangs up.
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { isatty } from 'node:tty';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import type { Ended, Shown } from '@nd7/confine';
import type { Ruleset } from '@nd7/policy';
import { CliError } from '../cli/io.js';
import { engineArguments, environmentFile, type EngineKind } from './box-engine.js';
import { Gate, GATE_WORD } from './box-gate.js';
import type { Client } from '../recorder/peer.js';
import type { Door } from './door.js';
import type { RunRequest } from './session-request.js';
import { passSignals } from './signals.js';

const ASKED_MS = 10_000;
const AGAIN_MS = 20;

/** What of nd7's a box has inside. */
export interface Inside {
  request: RunRequest;
  ruleset: Ruleset;
  door: Door;
  /** What `nd7-box` is told of the ways out. */
  words: readonly string[];
  /** The path of `nd7-box`. */
  first: string;
  shows: readonly Shown[];
  variables: Readonly<Record<string, string>>;
  argv: readonly string[];
  /** From now on those below this process are heard. */
  admit(first: Client): void;
}

/** Runs a program in a container and answers how it ended. Throws `CliError` where the engine makes none, or none that nd7 knows. */
export async function runContainer(
  program: string,
  { kind, image, args }: { kind: EngineKind; image: string; args: readonly string[] | undefined },
  { request, ruleset, door, words: ways, first, shows, variables, argv, admit }: Inside,
): Promise<Ended> {
  const files = { environment: join(door.control, 'environment'), identity: join(door.control, 'container') };
  const { text, left } = environmentFile(variables);
  if (left.length > 0) request.warn(`left out, since ${kind} takes no such variable from a file: ${left.join(', ')}`);
  writeFileSync(files.environment, text, { mode: 0o600, flag: 'wx' });
  const words = engineArguments({
    ...{ kind, image, ruleset, shows, cwd: request.cwd, given: args ?? [], files, variables },
    argv: [first, GATE_WORD, ...ways, '--', ...argv],
    user: { uid: process.geteuid?.() ?? 0, gid: process.getegid?.() ?? 0 },
    isTerminal: isatty(0) && isatty(1),
  });
  const engine = new Engine(program, request.environment, files.identity);
  let isAdmitted = false;
  let failure: unknown;
  const gate = await Gate.open(door.path, {
    kind,
    told: () => engine.firstProcess(),
    admitted: (one) => {
      admit(one);
      isAdmitted = true;
    },
    refused: (error) => (failure = error),
  });
  try {
    const child = spawn(program, words, { stdio: 'inherit', env: request.environment });
    const failed = once(child, 'error').then(([error]) => error as Error);
    if (child.pid === undefined)
      throw new CliError(2, `${program} could not be started: ${(await failed).message}`, undefined, 'no-box');
    // The client passes some on and some not, by whether there is a terminal.
    const release = passSignals((name) => void engine.signal(name).catch(() => child.kill(name)));
    const [code, signal] = (await once(child, 'close')) as [number | null, NodeJS.Signals | null];
    release();
    if (failure !== undefined) throw failure;
    if (!isAdmitted)
      throw new CliError(
        2,
        `${program} ended with ${code ?? signal} before the program began`,
        'What it said stands above. The image has to be there, and the engine on this machine: docs/limits.md, "In a container".',
        'open-box',
      );
    return { code, signal, failure: undefined };
  } finally {
    gate.close();
    // Where its client was ended alone.
    await engine.signal('SIGKILL').catch(() => undefined);
  }
}

/** What is asked of the engine about one container. */
class Engine {
  constructor(
    private readonly program: string,
    private readonly env: Readonly<Record<string, string | undefined>>,
    private readonly identityFile: string,
  ) {}

  /** Waits until the engine tells the container's first process. */
  async firstProcess(): Promise<number> {
    for (const until = performance.now() + ASKED_MS; performance.now() < until; await sleep(AGAIN_MS)) {
      const identity = this.#identity();
      if (identity === undefined) continue;
      const said = await this.#ask('inspect', '--format={{.State.Pid}}', identity);
      if (/^[1-9][0-9]*\s*$/.test(said)) return Number(said);
    }
    throw new CliError(2, `${this.program} tells no process of the container’s`, undefined, 'open-box');
  }

  /** Throws where there is no such container any more, or yet. */
  async signal(name: NodeJS.Signals): Promise<void> {
    const identity = this.#identity();
    if (identity === undefined) throw new CliError(1, 'there is no container yet');
    await this.#ask('kill', `--signal=${name.slice(3)}`, identity);
  }

  #identity(): string | undefined {
    try {
      return /^[0-9a-f]{12,64}$/.exec(readFileSync(this.identityFile, 'latin1').trim())?.[0];
    } catch {
      return undefined;
    }
  }

  async #ask(...args: string[]): Promise<string> {
    const { stdout } = await promisify(execFile)(this.program, args, { env: this.env, timeout: ASKED_MS });
    return stdout;
  }
}
