import { PolicyError } from './failure.js';
import { hasHalfCharacter } from './path.js';

/** Longest pattern, in components: keeps comparing cheap. */
const MAX_COMPONENTS = 8;
const MAX_LENGTH = 1024;

/**
 * Characters that file systems leave out when they compare names: HFS+ takes `.g\u200cit` for `.git` (git's CVE-2014-9390), ext4 and f2fs with
 * case folding do so with all that Unicode lets programs ignore.
 */
const IGNORED = /\p{Default_Ignorable_Code_Point}/gu;
/** It counts as a mark until marks are in their order, then as the letter that it is in capitals. */
const YPOGEGRAMMENI = '\u0345';

/**
 * The form in which names of files are compared where a file system may take two spellings for one: no ignored characters, decomposed by
 * compatibility, no case, no dots or blanks at the end (NTFS drops them), no `::$INDEX_ALLOCATION` or other stream. Each character is folded by
 * itself and marks are put in order afterwards, so that the supervisor's `fold_name` (native/observe) can do the same by a table.
 */
export function foldName(name: string): string {
  const folded = isAscii(name)
    ? name.toLowerCase()
    : [...name].map(foldCharacter).join('').normalize('NFKD').replaceAll(YPOGEGRAMMENI, 'ι');
  return withoutTail(folded.replace(/(?<=.):.*$/s, ''));
}

function isAscii(name: string): boolean {
  return /^[\0-\x7f]*$/.test(name);
}

function foldCharacter(character: string): string {
  // Some letters fold in two steps (U+1E9E, then ß, then ss).
  for (let folded = character; ;) {
    const next = [...folded.replace(IGNORED, '').normalize('NFKD')]
      .map((c) => (c === YPOGEGRAMMENI ? c : c.toUpperCase().toLowerCase().replaceAll('ς', 'σ')))
      .join('');
    if (next === folded) return folded;
    folded = next;
  }
}

/** Without blanks and dots at the end; a name of nothing else stays as it is. */
function withoutTail(name: string): string {
  let end = name.length;
  while (end > 0 && (name[end - 1] === ' ' || name[end - 1] === '.')) end--;
  return end === 0 ? name : name.slice(0, end);
}

/** Splits a pattern into its components. With `deep`, `**` may stand for any number of components. */
export function parsePattern(pattern: string, { deep }: { deep: boolean }): string[] {
  const parts = pattern.split('/');
  const refuse = (what: string, mend: string): never => {
    throw new PolicyError('bad-pattern', `"${pattern}" ${what}`, mend);
  };
  if (pattern.length > MAX_LENGTH || parts.length > MAX_COMPONENTS)
    refuse('is too long', `At most ${MAX_COMPONENTS} components.`);
  if (pattern.includes('\0')) refuse('has a NUL character', 'Take it out.');
  if (hasHalfCharacter(pattern)) refuse('has half of a character (a lone surrogate)', 'Write the whole character.');
  for (const part of parts) {
    if (part === '' || part === '.' || part === '..')
      refuse(`has "${part}" as a component`, 'Write the components with one / between them.');
    if (part.includes('**') && (part !== '**' || !deep))
      refuse(
        'has ** where it cannot stand',
        deep ? 'It stands alone between slashes: **/.env*.' : 'Only masks take it.',
      );
  }
  if (parts.at(-1) === '**') refuse('ends with **', 'Name what is meant: a rule holds for everything below it anyway.');
  return parts;
}

/**
 * Whether one name matches a component in which `*` stands for any run of characters, also none. Each text between stars is taken where it
 * first stands: a later place would leave less for what follows.
 */
export function nameMatches(component: string, name: string): boolean {
  if (!component.includes('*')) return component === name;
  const texts = component.split('*');
  const first = texts.shift() as string;
  const last = texts.pop() as string;
  if (name.length < first.length + last.length || !name.startsWith(first) || !name.endsWith(last)) return false;
  const end = name.length - last.length;
  let at = first.length;
  for (const text of texts) {
    const found = name.indexOf(text, at);
    if (found < 0 || found + text.length > end) return false;
    at = found + text.length;
  }
  return true;
}

/** Of every number of names from 1 on, whether all components match the first so many, `**` any number of them. Empty for no names. */
export function prefixMatches(pattern: readonly string[], names: readonly string[]): boolean[] {
  // reached[i]: the first i components match the names read so far.
  let reached = closure(pattern, [true]);
  return names.map((name) => {
    const next: boolean[] = [];
    for (let i = 0; i < pattern.length; i++) {
      if (reached[i] !== true) continue;
      if (pattern[i] === '**') next[i] = true;
      else if (nameMatches(pattern[i] as string, name)) next[i + 1] = true;
    }
    reached = closure(pattern, next);
    return reached[pattern.length] === true;
  });
}

/** `**` may match nothing. */
function closure(pattern: readonly string[], reached: boolean[]): boolean[] {
  for (let i = 0; i < pattern.length; i++) if (reached[i] === true && pattern[i] === '**') reached[i + 1] = true;
  return reached;
}
