import type { HookCommand } from '@nd7/hooks';
import { CODEX_EVENTS } from '@nd7/hooks';

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
