// What the recorder's tests share: throw-away homes, an in-process recorder, verification of what it wrote.
import { spawn } from 'node:child_process';
import type { ChildProcess, SpawnOptions } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { createKernel } from '@nd7/blake3';
import { readEntry } from '@nd7/entry';
import type { EntryView } from '@nd7/entry';
import { machineKey, openHome, readHead } from '@nd7/journal';
import { systemClock, systemRandom, verifySignatures } from '@nd7/signing';
import { python, referenceVerdict } from '@nd7/testing';
import { verifySession } from '@nd7/verify';
import { readConfig } from '../recorder/config.js';
import type { Answer, Request } from '../recorder/frames.js';
import { Recorder } from '../recorder/recorder.js';
import type { RecorderOptions } from '../recorder/recorder.js';

export const REPOSITORY = join(import.meta.dirname, '../../../..');
export const BIN = join(REPOSITORY, 'apps/agent/bin/nd7.js');
export const CAPTURES = join(REPOSITORY, 'tests/captures/claude-code');

const made: string[] = [];
export function throwAway(prefix = 'nd7-recorder-'): string {
  const folder = mkdtempSync(join(tmpdir(), prefix));
  made.push(folder);
  return folder;
}
/** Removes what tests made. A recorder that was killed or told to stop may still write; what it makes anew is left to the system's clean-up. */
export function removeThrowAways(): void {
  for (const folder of made.splice(0)) {
    try {
      rmSync(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 20 });
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOTEMPTY') throw error;
    }
  }
}

export function inProcess(root: string, options: Partial<RecorderOptions> = {}): Recorder & { warnings: string[] } {
  const home = openHome(root);
  const warnings: string[] = [];
  const recorder = new Recorder({
    home,
    clock: systemClock,
    random: systemRandom,
    machine: machineKey(home),
    config: () => readConfig(root),
    version: 'test',
    warn: (line) => warnings.push(line),
    ...options,
  });
  return Object.assign(recorder, { warnings });
}

export function hookRequest(
  payload: string | Uint8Array,
  env: Record<string, string> = {},
  agent = 'claude-code',
): Request {
  const meta = new Map([
    ['op', 'hook'],
    ['agent', agent],
    ...Object.entries(env).map(([key, value]): [string, string] => [`env.${key}`, value]),
  ]);
  return { op: 'hook', meta, payload: Buffer.from(payload) };
}

export const SELF = { pid: process.pid, uid: process.getuid?.() ?? 0, gid: 0 };

export async function say(
  recorder: Recorder,
  payload: object | string | Uint8Array,
  env: Record<string, string> = {},
  pid = process.pid,
): Promise<Answer> {
  const bytes = typeof payload === 'string' || payload instanceof Uint8Array ? payload : JSON.stringify(payload);
  return recorder.answer(hookRequest(bytes, env), { ...SELF, pid });
}

export const sessionsOf = (home: string): string[] =>
  existsSync(join(home, 'sessions')) ? readdirSync(join(home, 'sessions')).sort() : [];

export function entriesOf(home: string, session: string): EntryView[] {
  const bytes = readFileSync(join(home, 'sessions', session, 'log.jsonl'));
  const lines = bytes.toString('latin1').split('\n').slice(0, -1);
  return lines.map((line) => readEntry(Buffer.from(line, 'latin1')));
}

/** Class and kind of each entry, in order. */
export const kindsOf = (home: string, session: string): string[] =>
  entriesOf(home, session).map(({ kind, class: of }) => `${of} ${kind}`);

/** The payload before a shell command. */
export const toolCall = (session: string, id: string, command = 'ls') => ({
  session_id: session,
  hook_event_name: 'PreToolUse',
  tool_name: 'Bash',
  tool_input: { command },
  tool_use_id: id,
});

/** Verifies a session with the product and, where python3 is there, with the independent reading. Throws where they disagree. */
export async function verdictOf(
  home: string,
  session: string,
): Promise<{ verdict: string; entries: number; reason?: string }> {
  const log = join(home, 'sessions', session, 'log.jsonl');
  const head = readHead(openHome(home), session);
  const report = await verifySession({
    session,
    bytes: readFileSync(log),
    ...(head === undefined ? {} : { head }),
    kernel: createKernel(),
    verify: verifySignatures,
  });
  if (python() !== '') {
    const reference = referenceVerdict(session, dirname(log));
    if (reference.verdict !== report.verdict)
      throw new Error(`nd7ref.py says ${reference.text}, nd7 says ${report.verdict}`);
  }
  return {
    verdict: report.verdict,
    entries: report.entries,
    ...(report.reason === undefined ? {} : { reason: report.reason }),
  };
}

const running = new Set<ChildProcess>();
/** Starts a process that is killed at the end of the test at the latest. */
export function start(command: string, args: readonly string[], options: SpawnOptions = {}): ChildProcess {
  const child = spawn(command, args, { stdio: 'ignore', ...options });
  running.add(child);
  child.once('exit', () => running.delete(child));
  return child;
}
/** A shell that stands for the client, and the pid of a child of it that stands for the hook. */
export async function clientWithHook(): Promise<{ client: ChildProcess; hook: number }> {
  const client = start('sh', ['-c', 'sleep 1000 & echo $!; wait'], { stdio: ['ignore', 'pipe', 'ignore'] });
  const hook = Number(
    await new Promise<string>((resolve) => client.stdout?.once('data', (data: Buffer) => resolve(data.toString()))),
  );
  orphans.push(hook);
  return { client, hook };
}

const orphans: number[] = [];
/** Kills what `start` and `clientWithHook` began. */
export function killStarted(): void {
  for (const child of running) child.kill('SIGKILL');
  for (const pid of orphans.splice(0))
    try {
      process.kill(pid, 'SIGKILL');
    } catch {
      // gone already
    }
}

export async function until(
  what: string,
  condition: () => boolean | Promise<boolean>,
  limitMs = 60_000,
): Promise<void> {
  const end = performance.now() + limitMs;
  while (!(await condition())) {
    if (performance.now() > end) throw new Error(`not within ${limitMs} ms: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

/** The environment for a child process of nd7 in a throw-away home. */
export function environment(home: string, more: Record<string, string> = {}): Record<string, string> {
  return { PATH: process.env['PATH'] ?? '/usr/bin:/bin', HOME: join(home, '..'), ND7_HOME: home, ...more };
}
