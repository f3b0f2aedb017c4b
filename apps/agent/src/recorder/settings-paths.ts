import { homedir, userInfo } from 'node:os';
import { join } from 'node:path';

/** Where a registration reaches: one person, one project, or everybody on the machine where no project setting reaches. */
export type Scope = 'user' | 'project' | 'managed';

/** Claude Code's folder of managed drop-ins on this platform. */
export const MANAGED_FOLDER =
  process.platform === 'darwin'
    ? '/Library/Application Support/ClaudeCode/managed-settings.d'
    : '/etc/claude-code/managed-settings.d';

/** The folder of Claude Code's user settings. */
export function userSettingsFolder(env: NodeJS.ProcessEnv): string {
  const named = env['CLAUDE_CONFIG_DIR'];
  return named !== undefined && named !== '' ? named : join(env['HOME'] ?? homedir(), '.claude');
}

/**
 * The folders of Claude Code's user settings where nothing names another: by the password file, and by HOME, which a project's settings may have changed for
 * the hook that started this process.
 */
export function usualSettingsFolders(env: NodeJS.ProcessEnv = process.env): string[] {
  return [...new Set([homeByPasswordFile(), env['HOME'] ?? homedir()])].map((home) => join(home, '.claude'));
}

function homeByPasswordFile(): string {
  try {
    return userInfo().homedir;
  } catch {
    return homedir(); // a user without a row
  }
}

/** The settings file of a scope. */
export function settingsPath(scope: Scope, env: NodeJS.ProcessEnv, cwd: string): string {
  switch (scope) {
    case 'user':
      return join(userSettingsFolder(env), 'settings.json');
    case 'project':
      return join(cwd, '.claude', 'settings.json');
    case 'managed':
      return join(MANAGED_FOLDER, '50-nd7.json');
  }
}
