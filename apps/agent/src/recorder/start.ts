import { spawn } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { makeFolders } from '@nd7/kernel';
import { askRecorder } from './client.js';

/** The committed entry point of the CLI. */
export const BIN = fileURLToPath(new URL('../../bin/nd7.js', import.meta.url));

/** It is resident for days and does little at a time: a small young generation, little code, one helper thread. Saves some 20 MB. */
export const LEAN = ['--max-semi-space-size=1', '--optimize-for-size', '--v8-pool-size=1'];

/** What the recorder may know of the environment it is started from, the same as the shim passes: an agent's holds keys, and options that would load code. */
const PASSED = ['HOME', 'USER', 'LOGNAME', 'LANG', 'LC_ALL', 'TZ'];

/** Starts the recorder of a home in the background, in a session of its own. Returns at once; a second one exits quietly. Never throws. */
export function startRecorder(home: string): void {
  try {
    makeFolders(join(home, 'run'), 0o700);
    const log = openSync(join(home, 'run', 'recorder.log'), 'a', 0o600);
    const env = Object.fromEntries(
      PASSED.flatMap((name) => (process.env[name] === undefined ? [] : [[name, process.env[name]]])),
    );
    const child = spawn(process.execPath, [...LEAN, BIN, 'recorder'], {
      cwd: '/',
      // One arena of glibc's for all threads: each of its own keeps some megabyte that nobody needs at rest.
      env: { ...env, ND7_HOME: home, MALLOC_ARENA_MAX: '1' },
      detached: true,
      stdio: ['ignore', log, log],
    });
    child.on('error', () => undefined);
    child.unref();
    closeSync(log);
  } catch {
    // Whoever needs it records without it.
  }
}

/** Starts the recorder and waits until it answers; false when it does not within `timeoutMs`. */
export async function ensureRecorder(home: string, timeoutMs = 15_000): Promise<boolean> {
  const until = performance.now() + timeoutMs;
  for (let started = false; performance.now() < until;) {
    if ((await askRecorder(home, 'status', { timeoutMs: 2_000 })) !== undefined) return true;
    if (!started) startRecorder(home);
    started = true;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  return false;
}
