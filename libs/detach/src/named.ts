import type { Range } from './memory.js';
import { Runs } from './runs.js';
import { isPlaceholder } from './shapes.js';

/** How much a name says that its value is a secret: `strong` (a password), `weak` (a key or token: the value must look like one). */
export type NameWeight = 'none' | 'weak' | 'strong';

const STRONG = /pass(?:word|wd|phrase|code)|(?:^|[_.-])(?:pwd|pass|pgpass)$|secret/;
const WEAK =
  /token|api[_.-]?key|access[_.-]?key|private[_.-]?key|auth[_.-]?key|credential|encryption[_.-]?key|signing[_.-]?key|account[_.-]?key|master[_.-]?key|service[_.-]?key|session[_.-]?key|shared[_.-]?key|authorization|bearer|cookie|(?:^|[_.-])(?:auth|dsn)$/;
/** What is said about a secret rather than the secret itself. */
const ABOUT =
  /(?:tokens|count|counts|type|types|name|names|limit|limits|usage|url|uri|path|file|files|dir|length|size|expiry|expires(?:[_-]?(?:in|at))?|version|policy|policies|required|enabled|budget|max|min|ttl|field|header|prefix|hint|manager|store|ref|arn)$/;
/** Of a name, so much from its end is looked at. */
const NAME = 64;
/** How much of a value is judged. */
const JUDGED = 128;

export function nameWeight(name: string): NameWeight {
  const lower = name.slice(-NAME).toLowerCase();
  if (ABOUT.test(lower)) return 'none';
  return STRONG.test(lower) ? 'strong' : WEAK.test(lower) ? 'weak' : 'none';
}

/** Whether a value that stands beside a secret's name is one. `assigned`: it stands as `NAME=value`, as shells and env files write it. */
export function isSecretValue(value: string, weight: NameWeight, assigned = false): boolean {
  if (weight === 'none' || value.length < 4 || isPlaceholder(value)) return false;
  const judged = value.slice(0, JUDGED);
  if (/^[A-Za-z_][\w.]{0,100}(?:\(|\[|\?\.)/.test(judged)) return false; // a call or a look-up
  if (/^[A-Za-z_]+(?:\.[A-Za-z_]+)+$/.test(judged)) return false; // a member
  const kinds =
    (/[a-z]/.test(judged) ? 1 : 0) +
    (/[A-Z]/.test(judged) ? 1 : 0) +
    (/[0-9]/.test(judged) ? 1 : 0) +
    (/[^A-Za-z0-9]/.test(judged) ? 1 : 0);
  if (weight === 'strong')
    return assigned
      ? !/^[0-9.]{1,5}$/.test(judged)
      : value.length >= 6 && kinds >= 2 && !/^[A-Za-z][a-z]*(?:[A-Z][a-z]+)*$/.test(judged);
  if (!/[0-9]/.test(judged) || !/[A-Za-z]/.test(judged)) return value.length >= 24 && entropy(judged) >= 3.8;
  return value.length >= 12 && entropy(judged) >= 3;
}

/** Shannon entropy in bits a character, of the text itself. */
function entropy(text: string): number {
  const counts = new Map<number, number>();
  for (let i = 0; i < text.length; i++) counts.set(text.charCodeAt(i), (counts.get(text.charCodeAt(i)) ?? 0) + 1);
  let bits = 0;
  for (const n of counts.values()) bits -= (n / text.length) * Math.log2(n / text.length);
  return bits;
}

const SCHEMES = /^(?:bearer|basic|token|bot|apikey|digest|negotiate)$/i;

/**
 * Values beside a secret's name: `PASSWORD=…`, `token: …`, `"api_key": "…"` (quoted again inside a string too), `--password …`,
 * `Authorization: Bearer …`, `-u user:password`.
 */
export function findNamed(runs: Runs): Range[] {
  const { text } = runs;
  const found: Range[] = [];
  for (let i = 0; i < text.length; i++) {
    const c = text.charCodeAt(i);
    let value: Range | undefined;
    if (c === 0x3d || c === 0x3a) value = afterSeparator(runs, i);
    else if (c === 0x2d && text.charCodeAt(i + 1) !== 0x2d) value = afterFlag(runs, i);
    if (value) {
      found.push(value);
      i = Math.max(i, value.end - 1);
    }
  }
  runs.steps += text.length;
  return found;
}

function afterSeparator(runs: Runs, at: number): Range | undefined {
  const { text } = runs;
  const nameEnd = skipBack(runs, at);
  const nameStart = runs.start('dotted', nameEnd, NAME);
  if (nameStart === nameEnd) return undefined;
  const weight = nameWeight(text.slice(nameStart, nameEnd));
  if (weight === 'none') return undefined;
  let start = at + 1;
  if (text.charCodeAt(start) === 0x3d || text.charCodeAt(start) === 0x3e) start++; // ==, =>
  const range = valueAt(runs, start);
  if (!range) return undefined;
  const said = text.slice(range.start, Math.min(range.end, range.start + JUDGED + 1));
  // Authorization: Bearer <token>
  if (SCHEMES.test(said)) return following(runs, range.end, weight);
  const assigned = text.charCodeAt(at) === 0x3d && nameEnd === at && range.start - at <= 2;
  return isSecretValue(said, weight, assigned) ? range : undefined;
}

function following(runs: Runs, at: number, weight: NameWeight): Range | undefined {
  const start = runs.end('blank', at);
  const range = { start, end: runs.end('bare', start) };
  const length = range.end - range.start;
  return start > at &&
    length >= 8 &&
    isSecretValue(
      runs.text.slice(range.start, Math.min(range.end, range.start + JUDGED + 1)),
      weight === 'weak' ? 'strong' : weight,
    )
    ? range
    : undefined;
}

/** Back over what may stand between a name and its separator: blanks, one closing quote, one bracket, backslashes of quoting in quoting. */
function skipBack(runs: Runs, at: number): number {
  let end = at;
  for (let k = 0; k < 6 && end > 0; k++) {
    const c = runs.text.charCodeAt(end - 1);
    if (c !== 0x20 && c !== 0x22 && c !== 0x27 && c !== 0x60 && c !== 0x5c && c !== 0x5d) break;
    end--;
  }
  runs.steps += at - end + 1;
  return end;
}

/** The value that begins at `at`, after blanks and opening quotes: to the closing quote, or else to the end of the bare word. */
function valueAt(runs: Runs, at: number): Range | undefined {
  const { text } = runs;
  let start = runs.end('blank', at);
  let set: 'bare' | 'notDouble' | 'notSingle' | 'notBacktick' = 'bare';
  for (let k = 0; k < 4; k++) {
    const c = text.charCodeAt(start);
    if (c === 0x22) set = 'notDouble';
    else if (c === 0x27) set = 'notSingle';
    else if (c === 0x60) set = 'notBacktick';
    else if (c !== 0x5c) break;
    start++;
  }
  const end = runs.end(set, start);
  return end > start ? { start, end } : undefined;
}

/** `--token value`, `--password=value` is found at its `=`; `-u user:password` as curl and others take it. `at` is the last dash. */
function afterFlag(runs: Runs, at: number): Range | undefined {
  const { text } = runs;
  const long = at > 0 && text.charCodeAt(at - 1) === 0x2d;
  const before = at - (long ? 2 : 1);
  if (before >= 0 && text.charCodeAt(before) > 0x20) return undefined;
  const nameEnd = runs.end('dotted', at + 1);
  const name = text.slice(at + 1, Math.min(nameEnd, at + 1 + NAME));
  const gap = runs.end('blank', nameEnd);
  if (gap === nameEnd) return undefined;
  const user = long ? name === 'user' || name === 'proxy-user' : name === 'u';
  const weight = long ? nameWeight(name) : 'none';
  if (!user && weight === 'none') return undefined;
  const range = valueAt(runs, gap);
  if (!range) return undefined;
  const said = text.slice(range.start, Math.min(range.end, range.start + JUDGED + 1));
  if (!user) return isSecretValue(said, weight) ? range : undefined;
  const password = said.slice(said.indexOf(':') + 1);
  if (password === said || password.length < 4 || isPlaceholder(password)) return undefined;
  return { start: range.start + said.length - password.length, end: range.end };
}
