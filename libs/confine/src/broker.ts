import type { Duplex } from 'node:stream';

/** A command that a program inside gives away to be run; docs/protocol/exec.md. */
export interface AskedCommand {
  id: number;
  /** Who asks, by the kernel. */
  pid: number;
  uid: number;
  /** The shell was asked to be a login shell. */
  login: boolean;
  /** It gets the terminal that the one who asks has led. */
  terminal: boolean;
  /** Which of its standard streams are open. */
  streams: [boolean, boolean, boolean];
  text: Buffer;
}

/** What is run for it. All of it is the front's word. */
export interface CommandOrder {
  program: string;
  /** As bytes where they need not be text. */
  argv: readonly (string | Uint8Array)[];
  /** `NAME=value`, as bytes: the kernel takes any. */
  environment: readonly Uint8Array[];
  /** Pid, inside, of the process whose working folder it starts in. */
  folder: number;
  umask: number;
  /** Signals that it starts with ignored: bit n − 1 for signal n. */
  ignored: bigint;
}

export type CommandAnswer =
  /** `readsMore`: what it reads is asked about, so that grants to read reach it; only where the plan has a filter for that. */
  | { verdict: 'run'; order: CommandOrder; readsMore?: boolean }
  /** It runs under the session's rules as a child of who asked. */
  | { verdict: 'direct' }
  | { verdict: 'refuse'; reason: string };

export interface CommandEnd {
  /** Exit code, null when a signal ended it. */
  code: number | null;
  signal: number | null;
  /** Its keeper was killed, and it with it: how it ended nobody saw. */
  isLost: boolean;
  userUs: number;
  systemUs: number;
  maxRssKiB: number;
  minorFaults: number;
  majorFaults: number;
  blocksIn: number;
  blocksOut: number;
}

/** Who decides about commands and hears of them. */
export interface CommandFront {
  asked(command: AskedCommand): Promise<CommandAnswer>;
  /** The one who asks runs it itself, and only told of it. */
  told(command: AskedCommand): void;
  /** Both pids are as they are called outside; every process that the command makes stands below `keeper` as long as it lives. */
  began(id: number, keeper: number, shell: number): void;
  ended(id: number, end: CommandEnd): void;
  /** No process of it is left, or none ever was. */
  gone(id: number): void;
  /** It is run by who asked, since it could not be begun. */
  handedBack(id: number): void;
  /** Somebody said what is no request, or there were too many at once. */
  refused(pid: number, uid: number, why: 'no request' | 'too many'): void;
  /** Nothing is brokered any more; said of the end of the session too. */
  lost(what: 'zygote' | 'broker'): void;
}

const TOLD = { ask: 1, began: 2, ended: 3, gone: 4, direct: 5, refused: 6, noZygote: 7 } as const;
const ORDER = { run: 1, direct: 2, refuse: 3, runReader: 4 } as const;
const FLAG = { login: 8, terminal: 16, itself: 32 } as const;
/** A text is at most 128 KiB. */
const MAX = (128 << 10) + 64;
/** EXEC_BLOCK_MAX of native/launch/src/exec.h. */
const MAX_ORDER = 4 << 20;
/** A wait status: the low seven bits are the signal. */
const SIGNAL_BITS = 0x7f;

class FrameError extends Error {}

/** The front's end of the broker's channel. A frame that is wrong closes it: commands then run as if there were no broker. */
export class Broker {
  #bytes: Buffer = Buffer.alloc(0);

  constructor(
    private readonly channel: Duplex,
    private readonly front: CommandFront,
  ) {
    channel.on('data', (bytes: Buffer) => this.#take(bytes));
    channel.on('error', () => undefined);
    channel.once('close', () => front.lost('broker'));
  }

  #take(bytes: Buffer): void {
    this.#bytes = this.#bytes.length === 0 ? bytes : Buffer.concat([this.#bytes, bytes]);
    try {
      for (let frame = this.#next(); frame !== undefined; frame = this.#next()) this.#read(frame);
    } catch (error) {
      if (!(error instanceof FrameError)) throw error;
      this.channel.destroy();
    }
  }

  #next(): Buffer | undefined {
    if (this.#bytes.length < 4) return undefined;
    const length = this.#bytes.readUInt32LE(0);
    if (length < 8 || length > MAX) throw new FrameError('a frame of no such length');
    if (this.#bytes.length < 4 + length) return undefined;
    const frame = this.#bytes.subarray(4, 4 + length);
    this.#bytes = this.#bytes.subarray(4 + length);
    return frame;
  }

  #read(frame: Buffer): void {
    const [kind, id, body] = [frame.readUInt32LE(0), frame.readUInt32LE(4), frame.subarray(8)];
    const need = (length: number): void => {
      if (body.length < length) throw new FrameError('cut short');
    };
    if (kind === TOLD.ask) {
      need(13);
      const flags = body.readUInt32LE(8);
      const command: AskedCommand = {
        id,
        pid: body.readInt32LE(0),
        uid: body.readUInt32LE(4),
        login: (flags & FLAG.login) !== 0,
        terminal: (flags & FLAG.terminal) !== 0,
        streams: [(flags & 1) !== 0, (flags & 2) !== 0, (flags & 4) !== 0],
        text: body.subarray(12),
      };
      if ((flags & FLAG.itself) === 0) void this.#ask(command);
      else {
        this.front.told(command);
        this.#answer(command, { verdict: 'direct' });
      }
    } else if (kind === TOLD.began) {
      need(8);
      this.front.began(id, body.readInt32LE(0), body.readInt32LE(4));
    } else if (kind === TOLD.ended) {
      need(64);
      this.front.ended(id, endOf(body));
    } else if (kind === TOLD.gone) this.front.gone(id);
    else if (kind === TOLD.direct) this.front.handedBack(id);
    else if (kind === TOLD.refused) {
      need(8);
      this.front.refused(body.readInt32LE(0), body.readUInt32LE(4), id === 1 ? 'no request' : 'too many');
    } else if (kind === TOLD.noZygote) this.front.lost('zygote');
    else throw new FrameError('no such frame');
  }

  async #ask(command: AskedCommand): Promise<void> {
    // Where nothing can be decided it runs under the floor.
    this.#answer(command, await this.front.asked(command).catch((): CommandAnswer => ({ verdict: 'direct' })));
  }

  #answer(command: AskedCommand, given: CommandAnswer): void {
    let answer = given;
    let body =
      answer.verdict === 'run'
        ? encodeOrder(answer.order)
        : Buffer.from(answer.verdict === 'refuse' ? answer.reason : '');
    // A program may have an environment that no frame holds: the broker would take it for nonsense, and end with all that it keeps.
    if (body.length > MAX_ORDER) [answer, body] = [{ verdict: 'direct' }, Buffer.alloc(0)];
    const head = Buffer.alloc(12);
    const kind = answer.verdict === 'run' && answer.readsMore === true ? ORDER.runReader : ORDER[answer.verdict];
    [8 + body.length, kind, command.id].forEach((value, i) => head.writeUInt32LE(value, 4 * i));
    if (this.channel.writable) this.channel.write(Buffer.concat([head, body]));
  }
}

function endOf(body: Buffer): CommandEnd {
  const status = body.readUInt32LE(0);
  const signal = status & SIGNAL_BITS;
  const number = (index: number): number => Number(body.readBigUInt64LE(8 + 8 * index));
  return {
    code: signal === 0 ? (status >> 8) & 0xff : null,
    signal: signal === 0 ? null : signal,
    isLost: body.readUInt32LE(4) === 1,
    userUs: number(0),
    systemUs: number(1),
    maxRssKiB: number(2),
    minorFaults: number(3),
    majorFaults: number(4),
    blocksIn: number(5),
    blocksOut: number(6),
  };
}

/** The bytes that the zygote reads. Throws RangeError for a string with a NUL in it: it would end there. */
export function encodeOrder({ program, argv, environment, folder, umask, ignored }: CommandOrder): Buffer {
  const head = Buffer.alloc(24);
  head.writeUInt32LE(folder, 0);
  head.writeUInt32LE(umask, 4);
  head.writeBigUInt64LE(ignored, 8);
  head.writeUInt32LE(argv.length, 16);
  head.writeUInt32LE(environment.length, 20);
  const strings = [program, ...argv, ...environment].map((value) => Buffer.from(value as Uint8Array));
  const end = Buffer.alloc(1);
  return Buffer.concat([
    head,
    ...strings.flatMap((value) => {
      if (value.includes(0)) throw new RangeError('a string of a command has a NUL in it');
      return [value, end];
    }),
  ]);
}
