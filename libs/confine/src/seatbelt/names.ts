// Names as regular expressions: those of masks, compared as they are, and those of protected leaves, compared as file systems that know no case do.
import { foldName } from '@nd7/policy';

/** Any one component. */
const NAME = '[^/]+';

/** A text as a regular expression that matches it; what is not plain ASCII is any character, which matches more: these patterns only take away. */
export function exactText(text: string): string {
  return [...text].map((c) => (/^[\x20-\x7e]$/.test(c) ? escaped(c) : WIDE)).join('');
}

/** The same, whatever the case of its letters. */
export function foldedText(text: string): string {
  return [...text]
    .map((c) => (/^[a-z]$/.test(c) ? `[${c}${c.toUpperCase()}]` : /^[\x20-\x7e]$/.test(c) ? escaped(c) : WIDE))
    .join('');
}

const escaped = (c: string): string => (/[A-Za-z0-9_-]/.test(c) ? c : `\\${c}`);

/** What is not plain: as many bytes or characters as it may be, since nobody says which of them an expression counts. */
const WIDE = '[^/]+';

/** A component with `*` in it. */
const component = (pattern: string): string => pattern.split('*').map(exactText).join('[^/]*');

/**
 * A component that is none of some names, which are plain: the automaton that leaves their tree, written out. Names that are not plain are not
 * left out, so that it matches less than it might.
 */
export function noneOf(names: readonly string[]): string {
  const plain = names.filter((name) => /^[\x21-\x7e]+$/.test(name));
  return plain.length === 0 ? NAME : `(${leaving(plain)})`;
}

function leaving(words: readonly string[]): string {
  const heads = [...new Set(words.filter((word) => word !== '').map((word) => word.charAt(0)))].sort();
  const ways = heads.map((head) => {
    const rest = words.filter((word) => word.startsWith(head)).map((word) => word.slice(1));
    return `${escaped(head)}${rest.includes('') ? `(${leaving(rest)})` : `(${leaving(rest)})?`}`;
  });
  return [`[^/${heads.map(inClass).join('')}][^/]*`, ...ways].join('|');
}

const inClass = (c: string): string => (/[A-Za-z0-9_.]/.test(c) ? c : `\\${c}`);

/** A text that ends in none of some endings, which are plain. */
function notEnding(endings: readonly string[]): string {
  const ways: string[] = [];
  const visit = (tail: string): void => {
    if (endings.some((ending) => tail.endsWith(ending) && ending !== '')) return;
    const before = [
      ...new Set(
        endings
          .filter((one) => one.endsWith(tail) && one !== tail)
          .map((one) => one.charAt(one.length - tail.length - 1)),
      ),
    ];
    const end = exactText(tail);
    if (tail !== '') ways.push(end);
    ways.push(before.length === 0 ? `[^/]*${end}` : `[^/]*[^/${before.sort().map(inClass).join('')}]${end}`);
    for (const c of before) visit(c + tail);
  };
  visit('');
  return `(${ways.join('|')})?`;
}

/**
 * What follows a folder where a mask holds below it: the pattern, and everything below. `except` are endings of names that are let out
 * (`*.example`); other exceptions are not made, so that more is masked than has to be.
 */
export function maskRegex(pattern: string, except: readonly string[], notBelow: readonly string[]): string {
  const parts = pattern.split('/');
  const last = parts.length - 1;
  const endings = except
    .map((one) => /^\*\*\/\*([\x21-\x29\x2b-\x7e]+)$/.exec(one)?.[1])
    .filter((one) => one !== undefined && !one.includes('/'));
  const written = parts.map((part, i) => {
    if (part === '**') return `(/${noneOf(notBelow)})*`;
    if (i < last || endings.length === 0) return `/${component(part)}`;
    const [head = '', tail] = part.split('*');
    if (tail === undefined)
      return endings.some((ending) => part.endsWith(ending as string)) ? undefined : `/${exactText(part)}`;
    return part === `${head}*` ? `/${exactText(head)}${notEnding(endings as string[])}` : `/${component(part)}`;
  });
  return written.includes(undefined) ? NOTHING : `${written.join('')}(/${LINES})?$`;
}

/** Everything, line ends too. */
export const LINES = '(.|[^.])*';
/** An expression that matches no path. */
const NOTHING = '//$';

/** How a leaf's name may be written besides: blanks and dots at its end, and a stream behind it, are no other file for some file systems. */
const TAIL = '[ .]*(:[^/]*)?';

export interface LeafNames {
  /** Any of these. */
  patterns: readonly string[];
  /** Anywhere below the folder, in it alone, or in git directories, known by their names. */
  at: 'anywhere' | 'folder' | 'git-dir';
  below: boolean;
  /** Not so with git directories, which are known by the name `.git` here. */
  notBelow: readonly string[];
}

const GIT_DIR = '/\\.[gG][iI][tT]';

/** What follows a folder where a leaf protects names below it. */
export function leafRegex({ patterns, at, below, notBelow }: LeafNames): string {
  const free = `(/${noneOf(notBelow)})*`;
  const inside = at === 'folder' ? '' : at === 'anywhere' ? free : `(/${NAME})*${GIT_DIR}(/${kind}/${NAME})?`;
  return `${inside}(${patterns.map((pattern) => namesRegex(pattern.split('/'))).join('|')})${below ? `(/${LINES})?` : ''}$`;
}

const kind = '([mM][oO][dD][uU][lL][eE][sS]|[wW][oO][rR][kK][tT][rR][eE][eE][sS])';

/** A text before a `*`: its last letter may be one that is composed of it and marks, which then belong to what the `*` stands for. */
function foldedStart(text: string): string {
  const last = text.at(-1) ?? '';
  return /^[a-z]$/.test(last) ? `${foldedText(text.slice(0, -1))}(${foldedText(last)}|[^ -~])` : foldedText(text);
}

const foldedComponent = (part: string): string =>
  foldName(part)
    .split('*')
    .map((text, i, texts) => (i < texts.length - 1 ? foldedStart(text) : foldedText(text)))
    .join('[^/]*');

/** Components of a leaf's pattern, from a folder on. */
function namesRegex(components: readonly string[]): string {
  return components.map((part) => `/${foldedComponent(part)}${TAIL}`).join('');
}

/** Git directories below a folder, and the folders of others in them: none is made, moved or put in place of one. */
export function gitDirRegex(): string {
  return `(/${NAME})*${GIT_DIR}/${kind}(/[^/]+)?$`;
}
