import { findClaudeHooks } from '@nd7/hooks';
import { settingsPath } from './settings-paths.js';

/** The managed settings by which an administrator has attached nd7 for everybody on this machine; undefined where there are none. */
export function attachedForEverybody(env: NodeJS.ProcessEnv, cwd: string): string | undefined {
  const path = settingsPath('managed', env, cwd);
  try {
    return findClaudeHooks(path).length > 0 ? path : undefined;
  } catch {
    return undefined; // not to be read by this user, or no settings at all
  }
}
