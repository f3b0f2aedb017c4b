import { spawn, type ChildProcess, type IOType } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { Duplex } from 'node:stream';
import type { Ended, Proof } from '../launch.js';

/** What the process that becomes the program is told. */
export interface SeatbeltPlan {
  /** SBPL. */
  profile: string;
  parameters: Readonly<Record<string, string>>;
  /** Absolute. */
  program: string;
  argv: readonly string[];
  environment: Readonly<Record<string, string>>;
  cwd: string;
  /** What it aims at before it becomes the program: a hidden file, a folder that is not written, a port that is not the proxy's, a process outside. */
  selfTest: { canary: string; outside: string; port: number; front: number };
  /** What has Seatbelt's functions; the system's library where it is left out. */
  library?: string;
}

/** Errno of each attempt inside; null where it succeeded. */
export type Tried = Record<'read-hidden' | 'write-outside' | 'tcp' | 'signal', string | null>;

export interface SeatbeltLaunch {
  /** What was tried inside; undefined where the profile was refused or the process ended before: see `ended`. */
  tried: Promise<Tried | undefined>;
  /** Lets it become the program. */
  go(): void;
  /** Ends it before it is one. */
  refuse(): void;
  ended: Promise<Ended>;
  process: ChildProcess;
}

const INSIDE = fileURLToPath(new URL('./inside.js', import.meta.url));

/** Starts a process that confines itself, and waits for the word to become the program. */
export function launchSeatbelt(
  plan: SeatbeltPlan,
  stdio: readonly [IOType | number, IOType | number, IOType | number] = ['inherit', 'inherit', 'inherit'],
): SeatbeltLaunch {
  const child = spawn(process.execPath, [INSIDE], { stdio: [...stdio, 'pipe'], env: {}, cwd: '/' });
  const channel = child.stdio[3] as Duplex;
  channel.on('error', () => undefined);
  let said = '';
  let failure: Ended['failure'];
  const tried = new Promise<Tried | undefined>((done) => {
    channel.on('data', (bytes: Buffer) => {
      said += bytes.toString();
      if (!said.endsWith('\n')) return;
      const message = JSON.parse(said) as { tried?: Tried; failed?: string };
      said = '';
      if (message.failed !== undefined) failure = { step: 'seatbelt', error: 0, what: message.failed };
      done(message.tried);
    });
    channel.once('close', () => done(undefined));
  });
  channel.write(`${JSON.stringify(plan)}\n`);
  return {
    tried,
    go: () => void channel.write('go\n'),
    refuse: () => void child.kill('SIGKILL'),
    ended: new Promise((done) => {
      child.once('error', (error) =>
        done({ code: null, signal: null, failure: { step: 'seatbelt', error: 0, what: error.message } }),
      );
      child.once('close', (code, signal) => done({ code, signal, failure }));
    }),
    process: child,
  };
}

/**
 * What was shown: an attempt that was refused inside and succeeds outside, where `outside` is what the same attempts met there. One that
 * succeeded inside is a hole.
 */
export function proofsOf(inside: Tried, outside: Tried): Proof[] {
  return (Object.keys(inside) as (keyof Tried)[]).map((name) => ({
    name,
    verdict: inside[name] === null ? 'broken' : outside[name] === null ? 'held' : 'not-shown',
  }));
}
