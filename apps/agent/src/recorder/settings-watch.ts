import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { attachedFiles, findClaudeHooks, settingsValue } from '@nd7/hooks';

/** How a settings file would silence the recorder. */
export interface Silencing {
  file: string;
  /** `disable-all-hooks`: the switch stands in it; `hooks-removed`: nd7 was attached there and is not any more. */
  how: 'disable-all-hooks' | 'hooks-removed';
}

/** Looks at one settings file; undefined when it leaves the hooks alone, is missing, or cannot be read as settings. */
export function silencedBy(file: string, home: string): Silencing | undefined {
  let text = '';
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') return undefined;
  }
  const value = settingsValue(text) as { disableAllHooks?: unknown } | undefined;
  if (value?.disableAllHooks === true) return { file, how: 'disable-all-hooks' };
  if (!attachedFiles(home).includes(file)) return undefined;
  try {
    return findClaudeHooks(file).length === 0 ? { file, how: 'hooks-removed' } : undefined;
  } catch {
    return undefined; // broken JSON: the client does not read it either, and keeps what it had
  }
}

/** Whether that changes nothing: the settings of a confined session that nd7 has attached to say that hooks run, and go before all but managed ones. */
export function isMoot({ how }: Silencing, session: { isAttached: boolean }): boolean {
  return how === 'disable-all-hooks' && session.isAttached;
}

/** The settings files of a Claude Code session that an agent can write, besides policy. */
export function settingsFiles(project: string | undefined, userFolders: Iterable<string>): string[] {
  const inProject =
    project === undefined ? [] : ['settings.json', 'settings.local.json'].map((name) => join(project, '.claude', name));
  return [...inProject, ...[...userFolders].map((folder) => join(folder, 'settings.json'))];
}

/** Whether one of the files gives the client a status line: a command that it runs by itself, whenever it likes. */
export function hasStatusLine(files: readonly string[]): boolean {
  return files.some((file) => {
    try {
      return (settingsValue(readFileSync(file, 'utf8')) as { statusLine?: unknown } | undefined)?.statusLine != null;
    } catch {
      return false;
    }
  });
}

/** Watches settings files by their stat alone, so that looking costs nothing while nothing changes. */
export class SettingsWatch {
  private readonly seen = new Map<string, string>();

  constructor(private readonly home: string) {}

  /** The silencing changes among `files` since the last look; a file that was silencing at the first look counts. */
  look(files: readonly string[]): Silencing[] {
    return files.flatMap((file) => {
      const state = stateOf(file);
      if (this.seen.get(file) === state) return [];
      this.seen.set(file, state);
      const silencing = silencedBy(file, this.home);
      return silencing === undefined ? [] : [silencing];
    });
  }
}

function stateOf(file: string): string {
  try {
    const { mtimeMs, size, ino } = statSync(file);
    return `${mtimeMs} ${size} ${ino}`;
  } catch {
    return 'none';
  }
}
