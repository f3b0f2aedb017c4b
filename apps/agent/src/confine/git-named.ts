// What git's configuration names in the project: hooks, programs and files of configuration that git outside takes from there.
import { readFileSync, realpathSync, statSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { isPlain, isWithin, parseGitConfig, type ConfigEntry } from '@nd7/policy';

/** More than git lets include each other in earnest, and than a configuration has. */
const MOST_FILES = 20;
const MOST_NAMED = 100;
/** Paths that git reads as data. */
const DATA = /^(blame\.ignorerevsfile|commit\.template|core\.(excludesfile|attributesfile|worktree)|mailmap\.file)$/;

/**
 * Real paths in the project that the repository's configuration or the person's has git run, or read as configuration: `core.hooksPath`, `include.path`, and
 * words with a slash in whatever runs a command. They are named whether they are there or not.
 */
export function namedByGit(project: string, home: string): string[] {
  const named = new Set<string>();
  const files = [...configsOf(project), join(home, '.gitconfig'), join(home, '.config/git/config')];
  // It grows while it is walked.
  for (const file of files) {
    for (const entry of entriesOf(file)) {
      const included = isInclude(entry) ? resolve(dirname(file), untilded(entry.value ?? '', home)) : undefined;
      if (included !== undefined && files.length < MOST_FILES && !files.includes(included)) files.push(included);
      const paths =
        included === undefined ? wordsOf(entry).map((word) => resolve(project, untilded(word, home))) : [included];
      for (const path of paths.flatMap((one) => [one, realOf(one)]))
        if (path !== project && isWithin(path, project) && !/[*\p{Cc}]/u.test(path)) named.add(path);
    }
  }
  return [...named].sort().slice(0, MOST_NAMED);
}

const isInclude = ({ section, name }: ConfigEntry): boolean => /^include(if)?$/.test(section) && name === 'path';

function wordsOf(entry: ConfigEntry): string[] {
  const { key, section, name, value } = entry;
  if (value === null || isPlain(entry) || DATA.test(key) || /^(remote|submodule|url|branch)$/.test(section)) return [];
  if (section === 'core' && name === 'hookspath') return [value];
  return value.split(/[\s"'`!;|&()<>=$]+/).filter((word) => word.includes('/') && !word.includes('://'));
}

function untilded(path: string, home: string): string {
  return path.startsWith('~/') ? join(home, path.slice(2)) : path;
}

/** The repository's own files of configuration, of a linked work tree those that it shares too. */
function configsOf(project: string): string[] {
  const dotGit = join(project, '.git');
  const said = /^gitdir: ([^\n]+)/.exec(textOf(dotGit) ?? '')?.[1];
  const gitDir = said === undefined ? dotGit : resolve(project, said);
  const common = resolve(gitDir, textOf(join(gitDir, 'commondir'))?.trimEnd() ?? '.');
  return [join(common, 'config'), join(gitDir, 'config.worktree')];
}

function entriesOf(file: string): ConfigEntry[] {
  const text = textOf(file);
  const parsed = text === undefined ? undefined : parseGitConfig(Buffer.from(text, 'latin1'));
  if (parsed === undefined || 'fault' in parsed) return [];
  return parsed.entries.map((entry) => ({
    ...entry,
    value: entry.value && Buffer.from(entry.value, 'latin1').toString(),
  }));
}

/** One character a byte; nothing of what is no file, or more than git's configuration is. */
function textOf(path: string): string | undefined {
  try {
    const found = statSync(path);
    return found.isFile() && found.size < 1 << 20 ? readFileSync(path, 'latin1') : undefined;
  } catch {
    return undefined;
  }
}

/** With links followed as far as it is there. */
function realOf(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return path === dirname(path) ? path : join(realOf(dirname(path)), basename(path));
  }
}
