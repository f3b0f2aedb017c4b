import type { HookCommand } from '@nd7/hooks';
import { CODEX_EVENTS } from '@nd7/hooks';
import { isRun, stubOf } from './shell.js';

/** Seconds that Codex waits for a hook; of the session's end it takes 3 at most. */
const TIMEOUT = 30;
const END_TIMEOUT = 3;

/**
 * Options by which Codex (0.171.0) speaks to nd7 for one session and leaves confining to the boundary. Its hooks are shell commands. It runs no
 * hook that a person has not reviewed, and those of a command line cannot be: the option that says so lets all configured hooks run, inside.
 */
export function codexArguments({ command, args }: HookCommand): string[] {
  const words = [command, ...args].map((word) => `'${word.replaceAll("'", String.raw`'\''`)}'`).join(' ');
  const hooks = Object.keys(CODEX_EVENTS).flatMap((event) => {
    const timeout = event === 'SessionEnd' ? END_TIMEOUT : TIMEOUT;
    // A string of JSON is one of TOML.
    return ['-c', `hooks.${event}=[{hooks=[{type="command",command=${JSON.stringify(words)},timeout=${timeout}}]}]`];
  });
  return ['--dangerously-bypass-hook-trust', '-c', 'sandbox_mode="danger-full-access"', ...hooks];
}

/** Where Codex looks for the shell of its user. */
export const PASSWD = '/etc/passwd';

/**
 * The shell that Codex (0.171.0) runs commands with, `SHELL -lc TEXT` or, from a snapshot of the shell, `SHELL -c TEXT`: that of its user's entry in the password file, whatever SHELL says. With it
 * that file as it has to read for Codex to take the stub of the session in its place. Undefined where the entry names no bash or zsh: there is no stub for another.
 */
export function codexShell(passwd: string, uid = process.geteuid?.()): { path: string; passwd: string } | undefined {
  const lines = passwd.split('\n');
  const at = lines.findIndex((line) => line.split(':')[2] === String(uid));
  const fields = lines[at]?.split(':') ?? [];
  const path = fields[6] ?? '';
  if (fields.length !== 7 || !/\/(bash|zsh)$/.test(path) || !isRun(path)) return undefined;
  const ours = [...fields.slice(0, 6), stubOf(path)].join(':');
  return { path, passwd: lines.with(at, ours).join('\n') };
}
