// What the front on PATH and a session host say to each other: docs/protocol/session-host.md, native/front/src/frames.c.

/** Both ends have to speak the same, or the host what it spoke before: a front of protocol 1 knows no `prepare`. */
export const PROTOCOL = 2;
export const OLDEST_PROTOCOL = 1;
const MAX = 16 << 20;
const TO_HOST = { request: 1, launched: 2, exited: 3, printed: 4 } as const;
const FROM_HOST = { refuse: 1, launch: 2, say: 3, flush: 4, signal: 5, end: 6, prepare: 7 } as const;

/** A command line as it was typed, with where and by whom. */
export interface FrontRequest {
  protocol: number;
  /** Which of the three standard streams are terminals. */
  terminals: readonly [boolean, boolean, boolean];
  umask: number;
  cwd: string;
  /** Behind the program's own name. */
  argv: readonly string[];
  environment: Readonly<Record<string, string>>;
}

export type FromFront =
  | ({ kind: 'request' } & FrontRequest)
  /** `pid` of the launcher, or a negated errno. */
  | { kind: 'launched'; pid: number }
  /** How the launcher ended, as wait(2) tells it. */
  | { kind: 'exited'; status: number }
  | { kind: 'printed' };

/** What came is no frame of this protocol. */
export class FrameError extends Error {
  override readonly name = 'FrameError';
}

/** Puts frames together out of what a stream brings. */
export class FrameReader {
  #parts: Buffer[] = [];
  #length = 0;

  /** The frames that are whole now. Throws FrameError. */
  push(bytes: Buffer): FromFront[] {
    this.#parts.push(bytes);
    this.#length += bytes.length;
    const frames: FromFront[] = [];
    while (this.#length >= 4) {
      const size = this.#gather(4).readUInt32LE(0);
      if (size < 4 || size > MAX) throw new FrameError('a frame of no such length');
      if (this.#length < 4 + size) break;
      const whole = this.#gather(4 + size);
      frames.push(read(whole.subarray(4, 4 + size)));
      this.#parts = [whole.subarray(4 + size)];
      this.#length -= 4 + size;
    }
    return frames;
  }

  #gather(length: number): Buffer {
    if ((this.#parts[0]?.length ?? 0) < length) this.#parts = [Buffer.concat(this.#parts)];
    return this.#parts[0] as Buffer;
  }
}

function read(frame: Buffer): FromFront {
  const kind = frame.readUInt32LE(0);
  if (kind === TO_HOST.request) return { kind: 'request', ...requestOf(frame.subarray(4)) };
  if (frame.length !== 8) throw new FrameError('a frame of no such length');
  if (kind === TO_HOST.launched) return { kind: 'launched', pid: frame.readInt32LE(4) };
  if (kind === TO_HOST.exited) return { kind: 'exited', status: frame.readUInt32LE(4) };
  if (kind === TO_HOST.printed) return { kind: 'printed' };
  throw new FrameError('no such frame');
}

const NUMBERS = 5;

function requestOf(body: Buffer): FrontRequest {
  if (body.length < 4 * NUMBERS) throw new FrameError('a request that is cut short');
  const [protocol = 0, terminals = 0, umask = 0, words = 0, variables = 0] = Array.from({ length: NUMBERS }, (_, i) =>
    body.readUInt32LE(4 * i),
  );
  if (body.at(-1) !== 0) throw new FrameError('a text without an end');
  // A lone byte that is no UTF-8 would reach the program as another one.
  const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
  let all: string[];
  try {
    all = text.decode(body.subarray(4 * NUMBERS, -1)).split('\0');
  } catch {
    throw new FrameError('a text that is not UTF-8');
  }
  if (words < 1 || all.length !== 1 + words + variables) throw new FrameError('another number of texts');
  const [cwd = '', ...more] = all;
  if (!cwd.startsWith('/')) throw new FrameError('a folder that is no absolute path');
  const environment = new Map<string, string>();
  for (const one of more.slice(words)) {
    const at = one.indexOf('=');
    // As Node reads its own: of two by one name the first is the one that getenv(3) finds.
    if (at > 0 && !environment.has(one.slice(0, at))) environment.set(one.slice(0, at), one.slice(at + 1));
  }
  return {
    protocol,
    terminals: [(terminals & 1) !== 0, (terminals & 2) !== 0, (terminals & 4) !== 0],
    umask: umask & 0o777,
    cwd,
    argv: more.slice(1, words),
    environment: Object.fromEntries(environment),
  };
}

/** The front is to run the command line by the CLI: nothing was done for it. */
export function refuse(why: string): Buffer {
  return frame(FROM_HOST.refuse, Buffer.from(`${why}\0`));
}

/** The front is to start this launcher upon the channels of one attempt. */
export function launch(attempt: number, path: string): Buffer {
  return frame(FROM_HOST.launch, numbers(attempt), Buffer.from(`${path}\0`));
}

/** The front is to start this launcher upon those channels by now; its plan is still to come. `launch` takes it, or nobody. */
export function prepare(attempt: number, path: string): Buffer {
  return frame(FROM_HOST.prepare, numbers(attempt), Buffer.from(`${path}\0`));
}

/** Text for the person, on the standard error of the front. */
export function say(text: string): Buffer {
  return frame(FROM_HOST.say, Buffer.from(text));
}

/** The front answers when it has printed all that it was told before. */
export function flush(): Buffer {
  return frame(FROM_HOST.flush);
}

/** A signal for the launcher. */
export function signal(number: number): Buffer {
  return frame(FROM_HOST.signal, numbers(number));
}

/** The front ends so: by an exit code, or by the signal that ended the program. */
export function end(by: { code: number } | { signal: number }): Buffer {
  return frame(FROM_HOST.end, 'code' in by ? numbers(0, by.code & 0xff) : numbers(1, by.signal));
}

function frame(kind: number, ...body: Buffer[]): Buffer {
  const length = 4 + body.reduce((sum, part) => sum + part.length, 0);
  return Buffer.concat([numbers(length, kind), ...body]);
}

function numbers(...values: number[]): Buffer {
  const bytes = Buffer.alloc(4 * values.length);
  values.forEach((value, i) => bytes.writeUInt32LE(value, 4 * i));
  return bytes;
}
