import type { HookCommand } from '@nd7/hooks';
import type { Scope } from './settings-paths.js';
import { builtShim, installShim, shimPath } from './shim.js';
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
  return commandFor('path' in builtShim() ? shimPath(home, scope) : undefined, home, agent, scope);
}

/**
 * The command an agent is told to run for a home: the shim, copied to its place now, or node where no shim can be built. The text is
 * the same every time: agents that ask for trust ask once.
 */
export function hookCommand(home: string, agent: string, scope: Scope): RegisteredCommand {
  const installed = installShim(home, scope);
  if ('path' in installed)
    return { hook: commandFor(installed.path, home, agent, scope), shim: installed.path, problem: undefined };
  return { hook: commandFor(undefined, home, agent, scope), shim: undefined, problem: installed.problem };
}

function commandFor(shim: string | undefined, home: string, agent: string, scope: Scope): HookCommand {
  const args = ['hook', '--agent', agent];
  if (shim !== undefined) return { command: shim, args };
  // What stands in managed settings runs as many users, each with a home of their own.
  return { command: process.execPath, args: [BIN, ...args, ...(scope === 'managed' ? [] : ['--home', home])] };
}
