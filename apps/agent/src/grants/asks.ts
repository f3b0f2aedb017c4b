// What a program inside asks for: `nd7 ask …` and `nd7 why …` through the door. It is written down as what was said, and widens nothing.
import { readFileSync, realpathSync } from 'node:fs';
import { posix } from 'node:path';
import { why, type CompileInput, type Facts } from '@nd7/policy';
import { processFacts, type Peer } from '@nd7/kernel';
import { CliError } from '../cli/io.js';
import type { Answer, Request as Frame } from '../recorder/frames.js';
import { safeLine } from '../show/safe.js';
import { parseAsk, USAGE, type AskLine } from './ask-line.js';
import type { GrantBook } from './book.js';
import { FrameFault, readWanted } from './control-frames.js';
import { recordedWanted, type Request } from './entry.js';
import { explainLines, whyRun } from './explain.js';
import { unreached } from './extent.js';
import { asCliError, refuseHeld, ruled, smallest } from './ruling.js';
import { questionFor, wantedText, type Wanted } from './wanted.js';

const SOURCE = 'intent:ask';
/** So many requests wait at once, so many are taken in all, and so many at once before they come one every `REFILL_MS`. */
const MOST_PENDING = 20;
const MOST_ASKED = 500;
const BURST = 10;
const REFILL_MS = 6_000;
/** A line from inside is no longer. */
const MAX_LINE = 16 << 10;

export interface AsksParts {
  policies: CompileInput;
  book: GrantBook;
  facts: Facts;
  /** Writes what was said, before it is answered. */
  note(
    kind: string,
    data: Record<string, unknown>,
    what: string,
    source: string,
    peer: Record<string, unknown>,
  ): Promise<void>;
  /** Tells the person that somebody asks. */
  tell(request: Request): void;
  /** Told of an answer for which nobody waits. */
  decided(request: Request): void;
}

export class Asks {
  readonly #waiting = new Map<string, ((request: Request) => void)[]>();
  #tokens = BURST;
  #filled = performance.now();
  #asked = 0;
  /** Requests that were not taken, since there were too many. */
  turnedAway = 0;

  constructor(private readonly parts: AsksParts) {
    parts.book.onDecided = (request) => {
      const waiting = this.#waiting.get(request.id) ?? [];
      this.#waiting.delete(request.id);
      for (const tell of waiting) tell(request);
      if (waiting.length === 0) parts.decided(request);
    };
  }

  /** Answers a line that came through the door; undefined where the operation is another. Never rejects. */
  async answer({ op, meta, payload }: Frame, peer: Peer, gone: Promise<void>): Promise<Answer | undefined> {
    if (op !== 'ask') return undefined;
    let isJson = false;
    try {
      if (payload.length > MAX_LINE) throw new CliError(2, 'the line is too long', undefined, 'usage');
      const line = parseAsk(payload.toString('utf8'));
      ({ isJson } = line);
      if (line.verb === 'help') return { exit: 0, stdout: USAGE, stderr: '' };
      const wanted = wantedOf(line, meta.get('cwd'));
      return line.verb === 'why' ? this.#why(wanted, line) : await this.#ask(wanted, line, peer, gone);
    } catch (error) {
      const known = asCliError(
        error instanceof FrameFault ? new CliError(2, error.message, undefined, 'usage') : error,
      );
      const { exitCode = 1, code = 'failed', hint } = known instanceof CliError ? known : {};
      const message = safeLine(known instanceof Error ? known.message : String(known));
      if (isJson)
        return {
          exit: exitCode,
          stdout: `${JSON.stringify({ error: { code, message, ...(hint === undefined ? {} : { hint }) } })}\n`,
          stderr: '',
        };
      return { exit: exitCode, stdout: '', stderr: `nd7: ${message}\n${hint === undefined ? '' : `     ${hint}\n`}` };
    }
  }

  #why(wanted: Wanted, { isJson, right }: AskLine): Answer {
    const { ruleset } = this.parts.book;
    const question = questionFor(wanted);
    if (question === undefined)
      throw new CliError(2, `"${safeLine(wanted.what)}" stands for many`, 'Name one.', 'usage');
    // What lies outside is not looked at for who is inside: the rules alone answer.
    const answer = why(ruleset, question);
    // Whoever names a path alone may mean a program there: what is written is not always run.
    const run = right === undefined && 'path' in question ? whyRun(ruleset, question.path) : undefined;
    const isOther = run !== undefined && answer.outcome !== 'denied';
    const lines = [
      `${answer.outcome}  ${answer.reason}`,
      ...explainLines(answer, wanted, this.parts.book.extent),
      ...(isOther ? [`${run.outcome}  ${run.reason}`, ...explainLines(run, undefined, this.parts.book.extent)] : []),
    ].map((line) => safeLine(line));
    if (!isJson) return { exit: 0, stdout: lines.map((line) => `${line}\n`).join(''), stderr: '' };
    const { outcome, by, reason, source } = answer;
    return {
      exit: 0,
      stdout: `${JSON.stringify({ ...wanted, outcome, by, reason, rule: source?.text ?? null })}\n`,
      stderr: '',
    };
  }

  async #ask(said: Wanted, line: AskLine, peer: Peer, gone: Promise<void>): Promise<Answer> {
    const { book } = this.parts;
    this.#take();
    const wanted = smallest(said);
    // Who speaks is only what carries the words; whose they are stands above it.
    const by = { pid: peer.pid, program: programOf(processFacts(peer.pid)?.parent ?? peer.pid) };
    const data = { message: `asks for ${wantedText(said)}`, ...recordedWanted(said), reason: line.reason };
    const id = `r${book.nextId()}`;
    await this.parts.note('permission.asked', { id, ...data }, 'a request from inside', SOURCE, {
      pid: peer.pid,
      uid: peer.uid,
      program: by.program,
    });
    const verdict = this.#verdict(said, wanted);
    if (verdict !== undefined) return this.#say(line, { id, ...verdict });
    const known = book.requests.find((one) => one.state !== 'granted' && isAbout(one.wanted, wanted));
    if (known?.state === 'denied') return this.#say(line, { id: known.id, state: 'denied' });
    const request = known ?? this.#file({ id, wanted, reason: line.reason, by, made: new Date(), state: 'pending' });
    if (!line.wait) return this.#say(line, { id: request.id, state: 'asked' });
    return this.#say(line, { id: request.id, state: await this.#decided(request, line.timeoutMs, gone) });
  }

  /** What needs nobody: it is allowed already, or nobody can allow it. */
  #verdict(said: Wanted, wanted: Wanted): { state: State; why?: string } | undefined {
    const { book, policies, facts } = this.parts;
    const question = questionFor(said);
    if (question !== undefined && why(book.ruleset, question, facts).outcome !== 'denied')
      return { state: 'granted', why: 'it is allowed' };
    const useless = unreached(wanted, book.extent);
    if (useless !== undefined) return { state: 'denied', why: `nobody can grant that now: ${useless}` };
    const candidate = ruled(
      policies,
      [{ id: 'asked', wanted }],
      book.denials.filter(({ ended }) => ended === undefined),
    );
    try {
      // Whether a folder holds what stays closed is for who grants it.
      refuseHeld(candidate, 'asked', { ...wanted, below: false }, realHome(policies), facts);
    } catch (error) {
      if (error instanceof CliError && error.code === 'held') return { state: 'denied', why: error.message };
      throw error;
    }
    return undefined;
  }

  #file(request: Request): Request {
    const { requests } = this.parts.book;
    if (requests.filter(({ state }) => state === 'pending').length >= MOST_PENDING) throw this.#tooMany();
    requests.push(request);
    this.parts.tell(request);
    return request;
  }

  #decided(request: Request, timeoutMs: number, gone: Promise<void>): Promise<State> {
    if (request.state !== 'pending') return Promise.resolve(request.state);
    return new Promise((resolve) => {
      const timer = setTimeout(() => resolve('waiting'), timeoutMs);
      timer.unref();
      const done = (state: State): void => {
        clearTimeout(timer);
        resolve(state);
      };
      this.#waiting.set(request.id, [
        ...(this.#waiting.get(request.id) ?? []),
        ({ state }) => done(state === 'granted' ? 'granted' : 'denied'),
      ]);
      void gone.then(() => done('waiting'));
    });
  }

  #say({ isJson }: AskLine, { id, state, why: because }: { id: string; state: State; why?: string }): Answer {
    const exit = state === 'granted' || state === 'asked' ? 0 : 1;
    if (isJson) return { exit, stdout: `${JSON.stringify({ id, state, why: because ?? null })}\n`, stderr: '' };
    const text = because === undefined ? SAID[state] : `${SAID[state]}: ${because}`;
    return { exit, stdout: `nd7: ${id} ${text}\n`, stderr: '' };
  }

  #take(): void {
    const now = performance.now();
    this.#tokens = Math.min(BURST, this.#tokens + (now - this.#filled) / REFILL_MS);
    this.#filled = now;
    if (this.#tokens < 1 || this.#asked >= MOST_ASKED) throw this.#tooMany();
    this.#tokens--;
    this.#asked++;
  }

  #tooMany(): CliError {
    this.turnedAway++;
    return new CliError(
      1,
      'too many requests: this one was not taken',
      'Ask for what is needed, once; a person reads each.',
      'too-many',
    );
  }
}

type State = 'asked' | 'granted' | 'denied' | 'waiting';

const SAID: Readonly<Record<State, string>> = {
  asked: 'was put to the person at this machine, who decides; nothing has changed yet',
  granted: 'is granted',
  denied: 'is denied',
  waiting: 'has not been decided yet',
};

function wantedOf({ right, what, below, raw, verb }: AskLine, cwd: string | undefined): Wanted {
  if (right !== undefined && right !== 'net' && (right !== 'socket' || /[/~]/.test(what)))
    return readWanted({ right, what: posix.resolve(cwd?.startsWith('/') === true ? cwd : '/', what), below, raw });
  if (right !== undefined) return readWanted({ right, what, below, raw });
  if (verb === 'why' && /^[/.]/.test(what))
    return readWanted({ right: 'write', what: posix.resolve(cwd ?? '/', what) });
  return readWanted({ right: 'net', what });
}

function isAbout(a: Wanted, b: Wanted): boolean {
  return wantedText(a) === wantedText(b);
}

function realHome({ places }: CompileInput): string {
  try {
    return realpathSync(places.nd7Home);
  } catch {
    return places.nd7Home;
  }
}

function programOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/comm`, 'utf8').trimEnd();
  } catch {
    return '';
  }
}
