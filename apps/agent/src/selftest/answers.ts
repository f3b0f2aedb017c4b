import { closeSync, fstatSync, openSync, readSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Came } from './judge.js';

const POLL_MS = 20;
/** More than all attempts say together; what is inside could write for ever. */
const MAX_BYTES = 16 * 1024 * 1024;

/** What a process of attempts is told and what it answers: files, so that it needs no pipe of this process, which may have to be killed. */
export class Answers {
  readonly came = new Map<string, Came>();
  /** Standard input, output and error of the process. */
  readonly stdio: readonly [number, number, number];
  readonly #timer: NodeJS.Timeout;
  #read = 0;
  #rest = '';

  /** `listening` is told the port of a server that an attempt has made. */
  constructor(
    folder: string,
    attempts: readonly { name: string; does: readonly string[] }[],
    private readonly listening: (port: number) => void,
    private readonly progress: (count: number) => void,
  ) {
    writeFileSync(join(folder, 'attempts'), JSON.stringify(attempts), { mode: 0o600 });
    this.stdio = [
      openSync(join(folder, 'attempts'), 'r'),
      openSync(join(folder, 'answers'), 'wx+', 0o600),
      openSync(join(folder, 'errors'), 'wx+', 0o600),
    ];
    this.#timer = setInterval(() => this.#take(), POLL_MS);
  }

  /** The last of what was said on stderr. */
  get complaint(): string {
    return textOf(this.stdio[2], 0, 2000).trim().split('\n').at(-1) ?? '';
  }

  /** To be called when the process has ended. */
  end(): void {
    clearInterval(this.#timer);
    this.#take();
  }

  close(): void {
    clearInterval(this.#timer);
    for (const fd of this.stdio) closeSync(fd);
  }

  #take(): void {
    const size = Math.min(fstatSync(this.stdio[1]).size, MAX_BYTES);
    if (size <= this.#read) return;
    const lines = (this.#rest + textOf(this.stdio[1], this.#read, size - this.#read)).split('\n');
    this.#read = size;
    this.#rest = lines.pop() ?? '';
    for (const line of lines) this.#hear(line);
    this.progress(this.came.size);
  }

  /** What comes from inside is whatever somebody inside wrote. */
  #hear(line: string): void {
    let answer: Partial<Record<string, unknown>>;
    try {
      answer = JSON.parse(line) as Partial<Record<string, unknown>>;
    } catch {
      return;
    }
    const { name, code, said, error, listening } = answer ?? {};
    if (typeof name !== 'string') return;
    if (typeof listening === 'number' && listening > 0 && listening < 65_536) this.listening(listening);
    if (typeof code !== 'number') return;
    const text = (value: unknown): string => (typeof value === 'string' ? value : '');
    this.came.set(name, { code, said: text(said), error: text(error) });
  }
}

function textOf(fd: number, from: number, length: number): string {
  const bytes = Buffer.alloc(length);
  return bytes.toString('utf8', 0, readSync(fd, bytes, 0, length, from));
}
