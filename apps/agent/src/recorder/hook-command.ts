import type { HookCommand } from '@nd7/hooks';
import type { Scope } from './settings-paths.js';
import { installShim, shimPath, shimPossible } from './shim.js';
import { BIN } from './start.js';

/** The command to register with an agent, and what stands behind it. */
export interface RegisteredCommand {
  hook: HookCommand;
  /** Absolute path of the shim; undefined where node runs in its place. */
  shim: string | undefined;
  /** Why there is no shim. */
  problem: string | undefined;
}

/** The command that `hookCommand` will register, without writing anything. */
export function plannedCommand(home: string, agent: string, scope: Scope): HookCommand {
  return commandFor(shimPossible() ? shimPath(home, scope) : undefined, home, agent, scope);
}

/**
 * The command an agent is told to run for a home: the shim, copied to its place now, or node where no shim can be built. The text is
 * the same every time: agents that ask for trust ask once.
 */
export async function hookCommand(home: string, agent: string, scope: Scope): Promise<RegisteredCommand> {
  const installed = await installShim(home, scope);
  if ('path' in installed)
    return { hook: commandFor(installed.path, home, agent, scope), shim: installed.path, problem: undefined };
  return { hook: commandFor(undefined, home, agent, scope), shim: undefined, problem: installed.problem };
}

function commandFor(shim: string | undefined, home: string, agent: string, scope: Scope): HookCommand {
  // What stands in managed settings runs as many users, each with a home of their own.
  const homed = scope === 'managed' ? [] : ['--home', home];
  if (shim !== undefined) return { command: shim, args: [...homed, '--agent', agent] };
  return { command: process.execPath, args: [BIN, 'hook', ...homed, '--agent', agent] };
}
