import type { Duplex } from 'node:stream';
import { encodeWidening, GRANT_ID_MAX, GrantError, reasonOf, type Widening } from './grant.js';
import { LEARNED, type Learned } from './learned.js';
import type { Supervised } from './manifest.js';

/** What the supervisor was asked for; the numbers of docs/protocol/observe.md. */
export const CALLS = {
  1: 'open',
  2: 'mkdir',
  3: 'mknod',
  4: 'symlink',
  5: 'link',
  6: 'rename',
  7: 'rename-away',
  8: 'unlink',
  9: 'truncate',
  10: 'rmdir',
  11: 'chmod',
  12: 'utimes',
  13: 'chown',
  14: 'setxattr',
  15: 'connect',
  16: 'bind',
} as const;

/** A call that the table of names speaks of. */
export interface Observed {
  call: (typeof CALLS)[keyof typeof CALLS];
  /** Which of the ruleset's leaves or masks, or the id of a grant; undefined where none of them decided. */
  rule: { kind: 'leaf' | 'mask' | 'grant'; index: number } | undefined;
  /** Real path of the name. */
  path: string;
  /** Pid outside. */
  pid: number;
  /** Name of the program as the kernel has it (15 bytes). */
  program: string;
}

export interface ObservedEvent extends Observed {
  /** `recorded`: it was done. `masked`: it was done, and the name cannot be read any more. */
  verdict: 'refused' | 'recorded' | 'masked';
}

/** A mediated name is to get a content. What is answered holds for these bytes and no others. */
export interface Question extends Observed {
  /** Undefined where the name is not there. */
  before: Uint8Array | undefined;
  after: Uint8Array;
}

export interface Answer {
  allow: boolean;
  /** Written in place of what was asked. */
  content?: Uint8Array;
}

/** An IPv4 address and a port. */
export interface ConnectedEnd {
  address: string;
  port: number;
}

/** A program has connected to one of the plan's listeners. */
export interface Connected {
  /** Its own end; of address 0.0.0.0 what was told of ends with this port holds no more. */
  from: ConnectedEnd;
  to: ConnectedEnd;
  /** Its process and those above it up to the session's first, as they are called outside; empty where nobody can tell. `start` as `processFacts` has it. */
  line: { pid: number; start: string }[];
  /** Name of the program as the kernel has it (15 bytes). */
  program: string;
}

/** Who a session's supervisor speaks to. */
export interface Front {
  judge(question: Question): Promise<Answer>;
  heard(event: ObservedEvent): void;
  /** So many events were not told, since there were too many. */
  dropped?(count: number): void;
  /** What a session that learns was seen to do; null: there was more than is told. */
  learned?(seen: Learned | null): void;
  /** Told before the program's call is answered. */
  connected?(connected: Connected): void;
}

/** Frames are as long as two contents of 16 MiB. */
const MAX = 33 << 20;
const KIND = { ready: 1, event: 2, ask: 3, dropped: 5, widened: 6, narrowed: 7, learned: 8, connected: 9 } as const;
const SENT = { answer: 1, widen: 2, narrow: 3 } as const;
const FACT = { sockets: 1, masks: 4 } as const;
const VERDICTS = { 1: 'refused', 2: 'recorded', 3: 'masked' } as const;
const NO_RULE = 0xffff_ffff;
const IS_MASK = 0x8000_0000;
const IS_GRANT = 0x4000_0000;
const EACCES = 13;
/** ASKER_LINE_MAX of native/observe/src/observe.h. */
const MOST_ABOVE = 256;

/** What came was no frame: the session ends. */
class FrameError extends Error {}

/** The front's end of the channel. A frame that is wrong closes it, which ends the session; so does a front that does not answer. */
export class Supervision {
  #parts: Buffer[] = [];
  #length = 0;
  /** Resolves once the supervisor answers calls; undefined where it never came to that. */
  readonly ready: Promise<Supervised | undefined>;
  #isReady: (facts: Supervised | undefined) => void = () => undefined;
  /** What was sent and is not answered yet, by kind and id. */
  readonly #orders = new Map<string, (error: number) => void>();
  #hasEnded = false;

  constructor(
    private readonly channel: Duplex,
    private readonly front: Front | undefined,
  ) {
    channel.on('data', (bytes: Buffer) => this.#take(bytes));
    channel.on('error', () => undefined);
    this.ready = new Promise((done) => (this.#isReady = done));
    channel.on('close', () => {
      this.#hasEnded = true;
      this.#isReady(undefined);
      for (const answered of this.#orders.values()) answered(0);
    });
  }

  /** Resolves when the grant holds for every program of the session; rejects with `GrantError`, and then nothing of it holds. */
  async widen(widening: Widening): Promise<void> {
    const error = await this.#order('widen', widening.id, encodeWidening(widening));
    if (error !== 0) throw new GrantError(`${widening.path} cannot be granted: ${reasonOf(error)}`, error);
  }

  /** Resolves when the grant has ended: what programs have open stays theirs. Rejects with `GrantError`. */
  async narrow(id: number): Promise<void> {
    const error = await this.#order('narrow', id, new Uint8Array());
    if (error !== 0) throw new GrantError(`no such grant holds: ${id}`, error);
  }

  async #order(kind: 'widen' | 'narrow', id: number, body: Uint8Array): Promise<number> {
    if (!Number.isInteger(id) || id < 1 || id > GRANT_ID_MAX) throw new RangeError(`no number of a grant: ${id}`);
    if ((await this.ready) === undefined || this.#hasEnded) throw new GrantError('the session has ended', 0);
    const key = `${kind} ${id}`;
    if (this.#orders.has(key)) throw new RangeError(`it was asked for already: ${key}`);
    const error = await new Promise<number>((answered) => {
      this.#orders.set(key, answered);
      this.channel.write(Buffer.concat([u32(8 + body.length, SENT[kind], id), body]));
    }).finally(() => this.#orders.delete(key));
    if (this.#hasEnded) throw new GrantError('the session has ended', 0);
    return error;
  }

  #take(bytes: Buffer): void {
    this.#parts.push(bytes);
    this.#length += bytes.length;
    try {
      while (this.#length >= 4) {
        const head = this.#gather(4);
        const length = head.readUInt32LE(0);
        if (length < 8 || length > MAX) throw new FrameError('a frame of no such length');
        if (this.#length < 4 + length) return;
        const frame = this.#gather(4 + length);
        this.#parts = [frame.subarray(4 + length)];
        this.#length -= 4 + length;
        this.#read(new Reader(frame.subarray(4, 4 + length)));
      }
    } catch (error) {
      if (!(error instanceof FrameError)) throw error;
      this.channel.destroy();
    }
  }

  /** The first bytes in one piece: put together only when there are as many as are needed. */
  #gather(length: number): Buffer {
    if ((this.#parts[0]?.length ?? 0) < length) this.#parts = [Buffer.concat(this.#parts)];
    return this.#parts[0] as Buffer;
  }

  #read(frame: Reader): void {
    const kind = frame.number();
    const id = frame.number();
    if (kind === KIND.event) {
      const verdict = VERDICTS[frame.number() as keyof typeof VERDICTS];
      if (verdict === undefined) throw new FrameError('no verdict');
      this.front?.heard({ verdict, ...frame.observed() });
    } else if (kind === KIND.ask) {
      frame.number();
      const observed = frame.observed();
      const isThere = frame.number() === 1;
      const before = frame.bytes();
      void this.#ask(id, { ...observed, before: isThere ? before : undefined, after: frame.bytes() });
    } else if (kind === KIND.dropped) {
      this.front?.dropped?.(frame.number());
    } else if (kind === KIND.learned) {
      this.front?.learned?.(frame.learned());
    } else if (kind === KIND.connected) {
      this.front?.connected?.(frame.connected());
    } else if (kind === KIND.widened || kind === KIND.narrowed) {
      const answered = this.#orders.get(`${kind === KIND.widened ? 'widen' : 'narrow'} ${id}`);
      if (answered === undefined) throw new FrameError('an answer to nothing');
      answered(frame.number());
    } else if (kind === KIND.ready) {
      const facts = frame.number();
      this.#isReady({ sockets: (facts & FACT.sockets) !== 0, masks: (facts & FACT.masks) !== 0 });
    } else {
      throw new FrameError('no such frame');
    }
  }

  async #ask(id: number, question: Question): Promise<void> {
    const refused: Answer = { allow: false };
    // A judge that fails has not allowed anything.
    const answer = await (this.front?.judge(question) ?? Promise.resolve(refused)).catch(() => refused);
    const content = answer.allow ? answer.content : undefined;
    const head = Buffer.alloc(24);
    [
      20 + (content?.length ?? 0),
      SENT.answer,
      id,
      answer.allow ? 0 : EACCES,
      content === undefined ? 0 : 1,
      content?.length ?? 0,
    ].forEach((value, i) => head.writeUInt32LE(value, 4 * i));
    this.channel.write(content === undefined ? head : Buffer.concat([head, content]));
  }
}

class Reader {
  #at = 0;

  constructor(private readonly frame: Buffer) {}

  number(): number {
    if (this.frame.length - this.#at < 4) throw new FrameError('cut short');
    this.#at += 4;
    return this.frame.readUInt32LE(this.#at - 4);
  }

  bytes(): Buffer {
    const length = this.number();
    if (this.frame.length - this.#at < length) throw new FrameError('cut short');
    this.#at += length;
    return this.frame.subarray(this.#at - length, this.#at);
  }

  #text(): string {
    const end = this.frame.indexOf(0, this.#at);
    if (end < 0) throw new FrameError('a text without an end');
    const text = this.frame.toString('utf8', this.#at, end);
    this.#at = end + 1;
    return text;
  }

  learned(): Learned | null {
    const what = this.number();
    const [error, pid] = [this.number(), this.number()];
    const [path, said, program] = [this.#text(), this.#text(), this.#text()];
    if (what === 0) return null;
    const kind = LEARNED[what as keyof typeof LEARNED];
    if (kind === undefined) throw new FrameError('nothing that is learned');
    return { what: kind, path, said, error, pid, program };
  }

  connected(): Connected {
    const [from, to] = [this.#end(), this.#end()];
    const line = Array.from({ length: this.#count() }, () => {
      const [pid, low, high] = [this.number(), this.number(), this.number()];
      return { pid, start: String((BigInt(high) << 32n) | BigInt(low)) };
    });
    return { from, to, line, program: this.#text() };
  }

  #end(): ConnectedEnd {
    const [address, port] = [this.number(), this.number()];
    return { address: [24, 16, 8, 0].map((bits) => (address >>> bits) & 0xff).join('.'), port };
  }

  #count(): number {
    const count = this.number();
    if (count > MOST_ABOVE) throw new FrameError('more processes than there are');
    return count;
  }

  /** The rest of an event behind its verdict. */
  observed(): Observed {
    const call = CALLS[this.number() as keyof typeof CALLS];
    if (call === undefined) throw new FrameError('no such call');
    // The errno, which the verdict says already.
    this.number();
    const rule = this.number();
    const pid = this.number();
    return { call, rule: ruleOf(rule), pid, path: this.#text(), program: this.#text() };
  }
}

function ruleOf(number: number): Observed['rule'] {
  if (number === NO_RULE) return undefined;
  if (number >= IS_MASK) return { kind: 'mask', index: number - IS_MASK };
  return number >= IS_GRANT ? { kind: 'grant', index: number - IS_GRANT } : { kind: 'leaf', index: number };
}

function u32(...values: number[]): Buffer {
  const bytes = Buffer.alloc(4 * values.length);
  values.forEach((value, i) => bytes.writeUInt32LE(value, 4 * i));
  return bytes;
}
