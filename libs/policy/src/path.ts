import { PolicyError } from './failure.js';

/** What the names of places in a policy mean in one session. All absolute and normal. */
export interface Places {
  home: string;
  project: string;
  /** The temporary folder as programs inside see it. */
  tmp: string;
  nd7Home: string;
  /** The environment that `nd7 run` was started with: moves caches that are not where they are by default. */
  variables: Readonly<Record<string, string>>;
}

/** Variables that may stand at the beginning of a path, and what they mean where they are not set. */
const VARIABLES: Readonly<Record<string, string>> = {
  XDG_CONFIG_HOME: '~/.config',
  XDG_CACHE_HOME: '~/.cache',
  XDG_DATA_HOME: '~/.local/share',
  XDG_STATE_HOME: '~/.local/state',
  CLAUDE_CONFIG_DIR: '~/.claude',
  CODEX_HOME: '~/.codex',
  CARGO_HOME: '~/.cargo',
  RUSTUP_HOME: '~/.rustup',
  GOPATH: '~/go',
  GOCACHE: '~/.cache/go-build',
  GOMODCACHE: '$GOPATH/pkg/mod',
  GRADLE_USER_HOME: '~/.gradle',
  PIP_CACHE_DIR: '~/.cache/pip',
  UV_CACHE_DIR: '~/.cache/uv',
  npm_config_cache: '~/.npm',
  PNPM_HOME: '~/.local/share/pnpm',
};

/** Above what Linux takes for a whole path (PATH_MAX), nothing is a path. */
const MAX_PATH = 4095;

/** A path that begins at the root, without `.`, `..`, empty components or NUL, and without a `/` at the end. */
export function isNormal(path: string): boolean {
  if (path === '/') return true;
  if (!path.startsWith('/') || path.length > MAX_PATH || path.includes('\0')) return false;
  return path
    .slice(1)
    .split('/')
    .every((part) => part !== '' && part !== '.' && part !== '..');
}

/** The components of a normal path; none for `/`. */
export function componentsOf(path: string): string[] {
  return path === '/' ? [] : path.slice(1).split('/');
}

/** Whether `path` is `folder` or lies under it; by components, so that `/a/secret` is not under `/a/sec`. */
export function isWithin(path: string, folder: string): boolean {
  return folder === '/' || path === folder || path.startsWith(`${folder}/`);
}

/** `/`, `/a`, `/a/b` for `/a/b`. */
export function prefixesOf(path: string): string[] {
  const prefixes = ['/'];
  for (let at = path.indexOf('/', 1); at >= 0; at = path.indexOf('/', at + 1)) prefixes.push(path.slice(0, at));
  if (path !== '/') prefixes.push(path);
  return prefixes;
}

export function joinPath(folder: string, rest: string): string {
  if (rest === '') return folder;
  return folder === '/' ? `/${rest}` : `${folder}/${rest}`;
}

/**
 * Compares so that a folder stands before what lies in it, and else by UTF-16 code units of the components: the order of `Ruleset.files`.
 * Total: 0 only for equal paths.
 */
export function comparePaths(a: string, b: string): number {
  const left = componentsOf(a);
  const right = componentsOf(b);
  for (let i = 0; i < Math.min(left.length, right.length); i++) {
    const [x, y] = [left[i] as string, right[i] as string];
    if (x !== y) return x < y ? -1 : 1;
  }
  return left.length - right.length;
}

/**
 * Makes a path of a policy absolute. It begins with `/`, `~`, `.` (the project), `$TMP`, `$ND7_HOME` or a known variable; a bare name is
 * refused, since nobody could say what it is relative to. `..` and wildcards are refused: a rule is about one place.
 */
export function expandPath(written: string, places: Places): string {
  const [head = '', ...rest] = written.split('/');
  if (written === '')
    throw new PolicyError('bad-path', 'an empty path', 'Name a folder or a file, or take the entry out.');
  if (written.includes('\0'))
    throw new PolicyError('bad-path', 'a path with a NUL character', 'Take the character out.');
  if (hasHalfCharacter(written))
    throw new PolicyError(
      'bad-path',
      'a path with half of a character (a lone surrogate)',
      'Write the whole character.',
    );
  if (written.includes('*'))
    throw new PolicyError(
      'bad-path',
      `"${written}" has a wildcard, and a path rule is about one place`,
      'Patterns go to "masks" or "protect".',
    );
  const base = head === '' ? '/' : placeOf(head, written, places);
  const parts = rest.filter((part) => part !== '' && part !== '.');
  if (parts.includes('..'))
    throw new PolicyError('bad-path', `"${written}" has ".."`, 'Write where it leads, from / or ~ on.');
  const path = joinPath(base, parts.join('/'));
  if (!isNormal(path)) throw new PolicyError('bad-path', `"${written}" is no path`, 'Write it from / or ~ on.');
  return path;
}

/** A surrogate without its other half: no bytes of a file's name are it. */
export function hasHalfCharacter(text: string): boolean {
  return /\p{Surrogate}/u.test(text);
}

function placeOf(head: string, written: string, places: Places): string {
  if (head === '~') return places.home;
  if (head === '.') return places.project;
  if (head === '$TMP') return places.tmp;
  if (head === '$ND7_HOME') return places.nd7Home;
  const name = head.startsWith('$') ? head.slice(1) : '';
  const otherwise = Object.hasOwn(VARIABLES, name) ? VARIABLES[name] : undefined;
  if (otherwise === undefined) {
    const known = ['$TMP', '$ND7_HOME', ...Object.keys(VARIABLES).map((key) => `$${key}`)].join(' ');
    throw new PolicyError(
      'bad-path',
      `"${written}" does not say where it begins`,
      head.startsWith('$')
        ? `Known names are ${known}.`
        : `Write ./${written} for the project or ~/${written} for your home folder.`,
    );
  }
  return moved(name, places) ?? expandPath(otherwise, places);
}

/**
 * Where a variable of the environment has moved a folder. A value that is no path, or that would name the root, the home folder or a
 * folder above it, is not followed: `CARGO_HOME=/` would make the whole machine writable.
 */
function moved(name: string, places: Places): string | undefined {
  const value = Object.hasOwn(places.variables, name) ? places.variables[name] : undefined;
  const path = value?.split(':')[0]?.replace(/(?<=[^/])\/+$/, '');
  if (path === undefined || !isNormal(path) || isWithin(places.home, path)) return undefined;
  return path;
}
