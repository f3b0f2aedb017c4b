/// <reference path="../../entry/src/platform.d.ts" />

/*
 * Which changes of a git configuration file may pass. Git runs much of what its configuration names, so the file is not writable as a
 * whole; a read-only one breaks git silently, so it is not read-only either. Old and new are compared as parsed keys, and every key that
 * is added, changed, removed or moved must be one that runs nothing.
 */

/** One `key = value` of a file, in the order it stands there. One character of every text is one byte of the file. */
export interface ConfigEntry {
  /** `section.subsection.name` as git compares it: section and name in lower case. A subsection may hold dots. */
  key: string;
  section: string;
  /** null where there is none. */
  subsection: string | null;
  name: string;
  /** null where the name stands alone, which git takes for true. */
  value: string | null;
}

export type ConfigFault = 'too-long' | 'bad-section' | 'bad-name' | 'bad-value' | 'has-nul';

/** In bytes. */
const MAX_LENGTH = 1024 * 1024;
const MAX_ENTRIES = 20_000;
/** A header is repeated in the key of every entry below it. */
const MAX_HEADER = 1_024;

/**
 * Reads a git configuration file as git does (git-config(1), "Syntax"): sections with and without subsections (`[a "b"]`, the old `[a.b]`),
 * names with and without values, comments, quotes, escapes, continued lines, a byte order mark, CR LF. What git refuses or this does not
 * understand is a fault: a file that two readers could read differently may not pass. Bytes are not decoded, as git does not.
 */
export function parseGitConfig(bytes: Uint8Array): { entries: ConfigEntry[] } | { fault: ConfigFault; line: number } {
  if (bytes.length > MAX_LENGTH) return { fault: 'too-long', line: 1 };
  if (bytes.includes(0)) return { fault: 'has-nul', line: 1 };
  return new ConfigParser(oneByteText(bytes).replace(/^\xef\xbb\xbf/, '')).run();
}

function oneByteText(bytes: Uint8Array): string {
  const pieces: string[] = [];
  for (let at = 0; at < bytes.length; at += 4_096) pieces.push(String.fromCharCode(...bytes.subarray(at, at + 4_096)));
  return pieces.join('');
}

class Fault extends Error {
  constructor(readonly fault: ConfigFault) {
    super(fault);
  }
}

class ConfigParser {
  private at = 0;
  private readonly entries: ConfigEntry[] = [];
  /** What stands before the name in a key, without the dot. */
  private section: string | undefined;

  constructor(private readonly text: string) {}

  run(): { entries: ConfigEntry[] } | { fault: ConfigFault; line: number } {
    try {
      for (let c = this.peek(); c !== ''; c = this.peek()) {
        if (isSpace(c)) this.at++;
        else if (c === '#' || c === ';') this.skipLine();
        else if (c === '[') this.readSection();
        else this.readEntry();
      }
      return { entries: this.entries };
    } catch (error) {
      if (!(error instanceof Fault)) throw error;
      return { fault: error.fault, line: this.text.slice(0, this.at).split('\n').length };
    }
  }

  /** The next character, CR LF as LF, as git reads it; '' at the end. */
  private peek(): string {
    if (this.text[this.at] === '\r' && this.text[this.at + 1] === '\n') this.at++;
    return this.text[this.at] ?? '';
  }

  private next(): string {
    const c = this.peek();
    this.at++;
    return c;
  }

  private skipLine(): void {
    const end = this.text.indexOf('\n', this.at);
    this.at = end < 0 ? this.text.length : end + 1;
  }

  private readSection(): void {
    this.at++;
    let section = '';
    for (let c = this.next(); ; c = this.next()) {
      if (c === ']') break;
      if (c === ' ' || c === '\t') {
        if (section === '') throw new Fault('bad-section');
        this.section = `${section}.${this.readSubsection()}`;
        return;
      }
      if (!/^[A-Za-z0-9.-]$/.test(c)) throw new Fault('bad-section');
      section += c.toLowerCase();
      if (section.length > MAX_HEADER) throw new Fault('too-long');
    }
    // `[a.b]`: the old form; all of it is folded.
    if (section === '' || section.startsWith('.')) throw new Fault('bad-section');
    this.section = section;
  }

  private readSubsection(): string {
    let c = this.next();
    while (c === ' ' || c === '\t') c = this.next();
    if (c !== '"') throw new Fault('bad-section');
    let subsection = '';
    for (c = this.next(); c !== '"'; c = this.next()) {
      if (c === '' || c === '\n') throw new Fault('bad-section');
      if (c === '\\') {
        c = this.next();
        if (c === '' || c === '\n') throw new Fault('bad-section');
      }
      subsection += c;
      if (subsection.length > MAX_HEADER) throw new Fault('too-long');
    }
    if (this.next() !== ']') throw new Fault('bad-section');
    return subsection;
  }

  private readEntry(): void {
    if (this.section === undefined) throw new Fault('bad-name');
    let name = '';
    if (!/[A-Za-z]/.test(this.peek())) throw new Fault('bad-name');
    while (/[A-Za-z0-9-]/.test(this.peek())) name += this.next().toLowerCase();
    while (this.peek() === ' ' || this.peek() === '\t') this.at++;
    const c = this.peek();
    let value: string | null = null;
    if (c === '=') {
      this.at++;
      value = this.readValue();
    } else if (c !== '\n' && c !== '') throw new Fault('bad-name');
    this.entries.push(entryOf(`${this.section}.${name}`, value));
    if (this.entries.length > MAX_ENTRIES) throw new Fault('too-long');
  }

  private readValue(): string {
    let value = '';
    // How much of it was there before blanks that may turn out to be at the end.
    let kept = 0;
    let quoted = false;
    for (;;) {
      const c = this.peek();
      if (c === '' || c === '\n') {
        if (quoted) throw new Fault('bad-value');
        this.at++;
        return value.slice(0, kept);
      }
      this.at++;
      if (!quoted && (c === '#' || c === ';')) {
        this.skipLine();
        return value.slice(0, kept);
      }
      if (!quoted && isSpace(c)) {
        if (value !== '') value += c;
        continue;
      }
      if (c === '"') quoted = !quoted;
      else if (c === '\\') {
        const escaped = this.next();
        const meaning: Record<string, string> = { n: '\n', t: '\t', b: '\b', '\\': '\\', '"': '"', '\n': '' };
        if (!Object.hasOwn(meaning, escaped)) throw new Fault('bad-value');
        value += meaning[escaped] as string;
      } else value += c;
      kept = value.length;
    }
  }
}

/** What git takes for white space. */
function isSpace(c: string): boolean {
  return c === ' ' || c === '\t' || c === '\n' || c === '\r';
}

/** Git reads keys from both ends: the section up to the first dot, the name from the last on. */
function entryOf(key: string, value: string | null): ConfigEntry {
  const [first, last] = [key.indexOf('.'), key.lastIndexOf('.')];
  return {
    key,
    section: key.slice(0, first),
    subsection: first === last ? null : key.slice(first + 1, last),
    name: key.slice(last + 1),
    value,
  };
}

const words = (text: string): ReadonlySet<string> => new Set(text.split(' '));

/**
 * Keys that run nothing and lead nowhere else. Not whole sections: `gc.recentObjectsHook` is a command, `init.templateDir` brings hooks,
 * `pull.twohead` names a program, and what git adds next year is not here.
 */
const PLAIN: Readonly<Record<string, ReadonlySet<string>>> = {
  core: words(
    'bare filemode symlinks ignorecase logallrefupdates repositoryformatversion sparsecheckout sparsecheckoutcone precomposeunicode autocrlf eol quotepath longpaths',
  ),
  user: words('name email useconfigonly'),
  author: words('name email'),
  committer: words('name email'),
  init: words('defaultbranch defaultobjectformat defaultrefformat'),
  gc: words(
    'auto autodetach autopacklimit aggressivedepth aggressivewindow bigpackthreshold cruftpacks logexpiry maxcruftsize packrefs pruneexpire reflogexpire reflogexpireunreachable rerereresolved rerereunresolved worktreepruneexpire writecommitgraph',
  ),
  index: words('recordendofindexentries recordoffsettable skiphash sparse threads version'),
  pull: words('rebase ff'),
  push: words('default autosetupremote followtags recursesubmodules useforceifincludes negotiate'),
  merge: words('ff conflictstyle'),
  rebase: words(
    'abbreviatecommands autosquash autostash backend forkpoint maxlabellength missingcommitscheck rebasemerges reschedulefailedexec stat updaterefs',
  ),
  extensions: words('compatobjectformat noop objectformat preciousobjects refstorage relativeworktrees worktreeconfig'),
};

/** The same of sections whose keys have a subsection. */
const PLAIN_BELOW: Readonly<Record<string, ReadonlySet<string>>> = {
  branch: words('merge rebase description'),
  remote: words(
    'fetch push tagopt prune prunetags mirror skipdefaultupdate skipfetchall promisor partialclonefilter gh-resolved',
  ),
  submodule: words('branch active'),
};

/** Keys that are plain for some values: `section`, or `section.` of those with a subsection. */
const BY_VALUE: Readonly<Record<string, Readonly<Record<string, (value: string) => boolean>>>> = {
  extensions: { partialclone: isRemoteName },
  // A remote may be a URL in place of a name.
  'branch.': { remote: isRemote, pushremote: isRemote },
  'remote.': { url: isPlainUrl, pushurl: isPlainUrl },
  'submodule.': {
    url: isPlainUrl,
    update: (value) => words('checkout rebase merge none').has(value),
    // Out of the tree or into .git: CVE-2018-11235 and its relatives.
    path: (value) => !/^[/-]|(^|\/)\.\.?(\/|$)|(^|\/)\.git(\/|$)/i.test(value),
  },
};

function isRemote(value: string): boolean {
  return value === '.' || isRemoteName(value) || isPlainUrl(value);
}

/** Git hands the names of remotes to its own commands: one that begins with `-` is an option there (`--upload-pack=…`). */
function isRemoteName(value: string): boolean {
  return /^[A-Za-z0-9_\x80-\xff][A-Za-z0-9_./+\x80-\xff-]*$/.test(value);
}

/** Whether a key with this value may stand in a configuration that git reads outside. */
export function isPlain(entry: ConfigEntry): boolean {
  const { section, subsection, name, value } = entry;
  if (section === 'remote' && subsection !== null && !isRemoteName(subsection)) return false;
  // The name of a submodule is a path in .git/modules.
  if (section === 'submodule' && subsection !== null && /(^|\/)\.\.(\/|$)/.test(subsection)) return false;
  if (has(subsection === null ? PLAIN : PLAIN_BELOW, section, name)) return true;
  return value !== null && judgeOf(entry)?.(value) === true;
}

function judgeOf({ section, subsection, name }: ConfigEntry): ((value: string) => boolean) | undefined {
  const key = subsection === null ? section : `${section}.`;
  const judges = Object.hasOwn(BY_VALUE, key) ? BY_VALUE[key] : undefined;
  return judges !== undefined && Object.hasOwn(judges, name) ? judges[name] : undefined;
}

function has(table: Readonly<Record<string, ReadonlySet<string>>>, section: string, name: string): boolean {
  return Object.hasOwn(table, section) && table[section]?.has(name) === true;
}

/**
 * A place to fetch from that starts no program but git's own and ssh: https, http, ssh and git URLs, `user@host:path`, `file:` and paths.
 * `ext::` and every other `helper::address` runs a program, and a host or path that begins with `-` is an option to ssh or git.
 */
export function isPlainUrl(url: string): boolean {
  if (url === '' || hasControl(url) || url.startsWith('-') || /^[^/[\]]*::/.test(url)) return false;
  const scheme = /^([A-Za-z][A-Za-z0-9+.-]*):\/\/(.*)$/s.exec(url);
  if (scheme !== null) {
    const [, name = '', rest = ''] = scheme;
    if (name === 'file') return rest.startsWith('/');
    if (!['https', 'http', 'ssh', 'git', 'git+ssh', 'ssh+git'].includes(name)) return false;
    const authority = rest.split('/')[0] ?? '';
    const host = authority.slice(authority.lastIndexOf('@') + 1);
    return host !== '' && !/^\[?-/.test(authority) && !/^\[?-/.test(host) && !/%2d/i.test(authority);
  }
  if (url.startsWith('/')) return true;
  // host:path of ssh, as git tells it: a colon before the first slash.
  const scp = /^(?:([^@/:]*)@)?([^@/:[]+|\[[^\]-][^\]]*\]):(.*)$/s.exec(url);
  if (scp !== null) {
    const [, user = '', host = '', path = ''] = scp;
    return !user.startsWith('-') && !host.startsWith('-') && !path.startsWith('-');
  }
  return /^[A-Za-z0-9_.]/.test(url) && !url.includes(':');
}

function hasControl(text: string): boolean {
  return [...text].some((c) => c <= ' ' || c === '\x7f');
}

/**
 * The folder that git takes for a repository by such a URL, as it is written; undefined for what lies on another machine. A push runs the hooks of a
 * repository that lies there.
 */
export function folderOf(url: string): string | undefined {
  const file = /^file:\/\/(.*)$/is.exec(url)?.[1];
  if (file !== undefined) return percentDecoded(file);
  if (/^[A-Za-z][A-Za-z0-9+.-]*:\/\//.test(url)) return undefined;
  const [colon, slash] = [url.indexOf(':'), url.indexOf('/')];
  return colon >= 0 && (slash < 0 || colon < slash) ? undefined : url;
}

function percentDecoded(text: string): string {
  return text.replace(/%([0-9a-f]{2})/gi, (_whole, code: string) => String.fromCharCode(Number.parseInt(code, 16)));
}

/** A place to push to that is none: no folder lies in a device. */
export const NO_PUSH = '/dev/null/nd7-no-push-to-a-folder-that-a-session-writes';

export interface ConfigChange {
  /** Remotes from which may be fetched and to which may not be pushed, by their names: with `NO_PUSH` as `pushurl` the change may pass. */
  withoutPush: string[];
  /** Keys whose values changed in any way, as `section.subsection.name`, sorted, each once. */
  changed: string[];
  /** Those of them that may not. Empty: the change may pass. */
  refused: string[];
}

/**
 * Compares two git configuration files by what git would read from them. Values of one key are compared as lists, in order: git takes the
 * last of most and all of some. Taking a key out is a change too: that `core.hooksPath` is gone changes what runs. `mayBeWorkTree` says of a
 * value of `core.worktree` whether git may write its files there; where it is left out, nowhere. `mayBePushedTo` says of a folder whether what git runs there at
 * a push is none of the session's; where it is left out, of none.
 */
export function compareGitConfig(
  before: Uint8Array,
  after: Uint8Array,
  mayBeWorkTree: (value: string) => boolean = () => false,
  mayBePushedTo: (folder: string) => boolean = () => false,
): ConfigChange | { fault: ConfigFault; line: number } {
  const old = parseGitConfig(before);
  const now = parseGitConfig(after);
  if ('fault' in now) return now;
  // An old file that cannot be read has nothing that must stay; all of the new one has to be plain.
  const were = byKey('fault' in old ? [] : old.entries);
  const are = byKey(now.entries);
  const values = (of: Map<string, ConfigEntry[]>, key: string): string =>
    JSON.stringify((of.get(key) ?? []).map(({ value }) => value));
  const changed = [...new Set([...were.keys(), ...are.keys()])]
    .filter((key) => values(were, key) !== values(are, key))
    .sort();
  const isWorkTree = ({ key, value }: ConfigEntry): boolean => key === 'core.worktree' && mayBeWorkTree(value ?? '');
  const mayChange = (key: string): boolean =>
    are.get(key)?.every((entry) => isPlain(entry) || isWorkTree(entry)) ??
    (were.get(key) ?? []).every((entry) => mayGo(entry) || isWorkTree(entry));
  const pushes = new Pushes(are, changed, mayBePushedTo);
  const refused = changed.filter((key) => !mayChange(key) || pushes.refuses(key));
  return { changed: changed.map(readable), refused: refused.map(readable), withoutPush: pushes.held() };
}

/** Where git would push to by a configuration, as far as what changed says it. */
class Pushes {
  constructor(
    private readonly are: ReadonlyMap<string, readonly ConfigEntry[]>,
    private readonly changed: readonly string[],
    private readonly mayBePushedTo: (folder: string) => boolean,
  ) {}

  /** What a key says now that may not be pushed to; a branch, too, whose remote has gone: git takes the name for a folder then. */
  refuses(key: string): boolean {
    if (/^remote\..*\.pushurl$/s.test(key)) return this.#values(key).some((url) => !this.#isFine(url));
    if (/^branch\..*\.(remote|pushremote)$/s.test(key)) return this.#values(key).some((name) => !this.#isKnown(name));
    const remote = /^remote\.(.*)\.url$/s.exec(key)?.[1];
    if (remote === undefined || this.#isKnown(remote)) return false;
    return [...this.are.values()]
      .flat()
      .some(({ section, name, value }) => section === 'branch' && /^(push)?remote$/.test(name) && value === remote);
  }

  held(): string[] {
    const names = this.changed.map((key) => /^remote\.(.*)\.(url|pushurl)$/s.exec(key)?.[1]);
    return [...new Set(names)].filter(
      (name): name is string =>
        name !== undefined &&
        this.#values(`remote.${name}.pushurl`).length === 0 &&
        this.#values(`remote.${name}.url`).some((url) => !this.#isFine(url)),
    );
  }

  #values(key: string): string[] {
    return (this.are.get(key) ?? []).map(({ value }) => value ?? '');
  }

  #isKnown(remote: string): boolean {
    if (remote === '.' || this.#values(`remote.${remote}.url`).length > 0) return true;
    return folderOf(remote) === undefined;
  }

  #isFine(url: string): boolean {
    const folder = folderOf(url);
    return folder === undefined || url === NO_PUSH || this.mayBePushedTo(folder);
  }
}

/** Whether a key may be taken out: as one that is plain, whatever its value is. */
function mayGo(entry: ConfigEntry): boolean {
  return isPlain(entry) || judgeOf(entry) !== undefined;
}

function byKey(entries: readonly ConfigEntry[]): Map<string, ConfigEntry[]> {
  const map = new Map<string, ConfigEntry[]>();
  for (const entry of entries) {
    const list = map.get(entry.key);
    if (list === undefined) map.set(entry.key, [entry]);
    else list.push(entry);
  }
  return map;
}

/** A key for people: its bytes as UTF-8. */
function readable(key: string): string {
  return new TextDecoder().decode(Uint8Array.from(key, (c) => c.charCodeAt(0)));
}
