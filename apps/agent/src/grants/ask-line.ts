// The line by which a program inside asks. It comes as words that end by NUL, so that the shim that carries it need not understand it.
import { CliError } from '../cli/io.js';
import { parseScope } from './scope.js';
import { isRight, type Right } from './wanted.js';

export interface AskLine {
  verb: 'ask' | 'why' | 'help';
  /** Undefined where `why` leaves it to the form of what is named. */
  right: Right | undefined;
  what: string;
  below: boolean;
  raw: boolean;
  /** What it is for, in the program’s words: one line, cut to 500 characters. */
  reason: string;
  wait: boolean;
  timeoutMs: number;
  isJson: boolean;
}

export const USAGE = `usage: nd7 ask [--wait [--timeout 10m]] [--reason TEXT] [--below] [--json] read|write|net|socket WHAT
       nd7 why [read|write|net|socket] WHAT

ask puts a request to the person at this machine, who decides outside; it widens nothing. --wait: 0 granted, 1 denied or not decided in time.
`;
const MAX_REASON = 500;
const WAIT_MS = 10 * 60_000;
/** The shim waits a minute longer. */
const MOST_WAIT_MS = 15 * 60_000;

/** Throws `CliError` (2) for what is no such line. */
export function parseAsk(text: string): AskLine {
  const words = text.split('\0');
  if (words.at(-1) === '') words.pop();
  const line: AskLine = {
    verb: 'ask',
    right: undefined,
    what: '',
    below: false,
    raw: false,
    reason: '',
    wait: false,
    timeoutMs: WAIT_MS,
    isJson: false,
  };
  const plain: string[] = [];
  const value = (i: number): string => {
    const next = words[i + 1];
    if (next === undefined) throw usage(`${words[i] ?? ''} needs a value`);
    return next;
  };
  let options = true;
  for (let i = 0; i < words.length; i++) {
    const word = words[i] as string;
    if (!options || !word.startsWith('-')) plain.push(word);
    else if (word === '--') options = false;
    else if (word === '--below') line.below = true;
    else if (word === '--raw') line.raw = true;
    else if (word === '--wait') line.wait = true;
    else if (word === '--json') line.isJson = true;
    else if (word === '-h' || word === '--help') line.verb = 'help';
    else if (word === '--reason') line.reason = oneLine(value(i++));
    else if (word.startsWith('--reason=')) line.reason = oneLine(word.slice('--reason='.length));
    else if (word === '--timeout') line.timeoutMs = timeout(value(i++));
    else throw usage(`no option is called ${word.slice(0, 40)}`);
  }
  return withPlain(line, plain);
}

function withPlain(line: AskLine, plain: string[]): AskLine {
  const [verb, ...rest] = plain;
  if (line.verb === 'help' || verb === undefined || verb === 'help') return { ...line, verb: 'help' };
  if (verb !== 'ask' && verb !== 'why') throw usage(`nothing is called "${verb.slice(0, 40)}" inside a session`);
  const [first, second, ...more] = rest;
  if (more.length > 0) throw usage('one thing at a time');
  if (isRight(first) && second !== undefined) return { ...line, verb, right: first, what: second };
  if (verb === 'why' && first !== undefined && second === undefined) return { ...line, verb, what: first };
  throw usage('it has to say read, write, net or socket, and what');
}

function timeout(text: string): number {
  const ms = parseScope(text);
  if (typeof ms !== 'number') throw usage(`"${text.slice(0, 40)}" is no time: 90s, 10m`);
  return Math.min(ms, MOST_WAIT_MS);
}

function oneLine(text: string): string {
  return text
    .replaceAll(/[\s\0]+/g, ' ')
    .trim()
    .slice(0, MAX_REASON);
}

function usage(message: string): CliError {
  return new CliError(2, message, 'nd7 ask --help says how.', 'usage');
}
