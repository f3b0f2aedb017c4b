import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { Home } from '@nd7/journal';
import type { HookCommand } from '@nd7/hooks';
import { lastEntries } from './firing.js';

/** The session that holds the doctor's probes. */
export const PROBE_SESSION = 'nd7-doctor';
const LIMIT_MS = 20_000;

/**
 * Runs a registered command the way a client does, with a payload that no client sends, and looks for it in the log of this home.
 */
export async function probe(
  hook: HookCommand,
  at: { home: string; env: NodeJS.ProcessEnv; cwd: string },
): Promise<{ ok: true; ms: number; session: string; seq: number } | { ok: false; problem: string }> {
  const mark = randomBytes(12).toString('hex');
  const payload = JSON.stringify({ session_id: PROBE_SESSION, hook_event_name: 'Nd7Probe', cwd: at.cwd, probe: mark });
  const started = performance.now();
  const ran = await run(hook, payload, at);
  const ms = Math.round(performance.now() - started);
  if (typeof ran === 'string') return { ok: false, problem: ran };
  if (ran.exit !== 0 || ran.stdout !== '')
    return {
      ok: false,
      problem: `it answered a mere probe with exit ${ran.exit}${ran.stdout === '' ? '' : ` and ${ran.stdout.slice(0, 200)}`}${ran.stderr === '' ? '' : ` (${ran.stderr.slice(0, 300).trim()})`}`,
    };
  const entry = lastEntries(new Home(at.home), PROBE_SESSION).findLast((view) => view.data?.includes(mark));
  if (entry?.seq === undefined)
    return {
      ok: false,
      problem: `it ran, but its payload stands in no log of ${at.home}${ran.stderr === '' ? '' : ` (${ran.stderr.slice(0, 300).trim()})`}`,
    };
  return { ok: true, ms, session: PROBE_SESSION, seq: entry.seq };
}

function run(
  hook: HookCommand,
  payload: string,
  at: { env: NodeJS.ProcessEnv; cwd: string },
): Promise<{ exit: number; stdout: string; stderr: string } | string> {
  return new Promise((resolve) => {
    const env = { ...at.env };
    // The probe names its session itself, also when the doctor is run by an agent.
    delete env['CLAUDE_CODE_SESSION_ID'];
    const child = spawn(hook.command, hook.args, {
      cwd: at.cwd,
      env,
      stdio: ['pipe', 'pipe', 'pipe'],
    });
    // Not spawn's own timeout: it keeps this process for a child that never began.
    const timer = setTimeout(() => child.kill('SIGTERM'), LIMIT_MS);
    let [stdout, stderr] = ['', ''];
    child.stdout.on('data', (chunk: Buffer) => (stdout += chunk.toString()));
    child.stderr.on('data', (chunk: Buffer) => (stderr += chunk.toString()));
    child.on('error', (error) => {
      clearTimeout(timer);
      resolve(`it cannot be run (${(error as NodeJS.ErrnoException).code ?? error.message})`);
    });
    child.on('close', (code, signal) => {
      clearTimeout(timer);
      resolve(signal === null ? { exit: code ?? -1, stdout, stderr } : `it did not end within ${LIMIT_MS / 1000} s`);
    });
    child.stdin.on('error', () => undefined);
    child.stdin.end(payload);
  });
}
