import { readdirSync, readFileSync } from 'node:fs';
import { userInfo } from 'node:os';
import { dirname, join } from 'node:path';
import { findClaudeHooks, settingsValue } from '@nd7/hooks';
import { MANAGED_FOLDER } from '../recorder/settings-paths.js';

/** What an administrator's settings of Claude Code say of hooks and of the client's own sandbox. */
export interface ManagedSettings {
  /** The file that switches hooks off: all of them, or all but the administrator's. */
  silence: { file: string; what: 'disableAllHooks' | 'allowManagedHooksOnly' } | undefined;
  /** Whether nd7 is attached there, and its shims of this user speak to this home. */
  isAttached: boolean;
  /** The file that insists on the client's own sandbox. */
  sandbox: string | undefined;
}

interface Switches {
  disableAllHooks?: unknown;
  allowManagedHooksOnly?: unknown;
  sandbox?: { enabled?: unknown };
}

/** Reads the administrator's settings: managed-settings.json, then the drop-ins in the order of their names; of a switch the last word holds. */
export function readManaged(nd7Home: string, folder = MANAGED_FOLDER): ManagedSettings {
  const files = [join(dirname(folder), 'managed-settings.json'), ...dropIns(folder)];
  const said = new Map<string, { file: string; value: unknown }>();
  let isAttached = false;
  for (const file of files) {
    const settings = read(file);
    if (settings === undefined) continue;
    const { disableAllHooks, allowManagedHooksOnly, sandbox } = settings;
    for (const [name, value] of Object.entries({ disableAllHooks, allowManagedHooksOnly, sandbox: sandbox?.enabled }))
      if (value !== undefined) said.set(name, { file, value });
    isAttached ||= findClaudeHooks(file).length > 0;
  }
  const on = (name: string): string | undefined => {
    const last = said.get(name);
    return last?.value === true ? last.file : undefined;
  };
  // A registration for everybody goes by the password file.
  isAttached &&= nd7Home === join(homeByPasswordFile(), '.nd7');
  const [all, others] = [on('disableAllHooks'), on('allowManagedHooksOnly')];
  return {
    silence:
      all !== undefined
        ? { file: all, what: 'disableAllHooks' }
        : others !== undefined && !isAttached
          ? { file: others, what: 'allowManagedHooksOnly' }
          : undefined,
    isAttached,
    sandbox: on('sandbox'),
  };
}

function dropIns(folder: string): string[] {
  try {
    return readdirSync(folder)
      .filter((name) => name.endsWith('.json'))
      .sort()
      .map((name) => join(folder, name));
  } catch {
    return [];
  }
}

/** Undefined for what is not there, cannot be read or is no object: the client does not take it either. */
function read(file: string): Switches | undefined {
  try {
    const value: unknown = settingsValue(readFileSync(file, 'utf8'));
    return typeof value === 'object' && value !== null ? (value as Switches) : undefined;
  } catch {
    return undefined;
  }
}

function homeByPasswordFile(): string {
  try {
    return userInfo().homedir;
  } catch {
    return process.env['HOME'] ?? '/';
  }
}
