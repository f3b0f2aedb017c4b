import type { ChildProcess } from 'node:child_process';
import { closeSync } from 'node:fs';
import type { Socket } from 'node:net';
import { constants } from 'node:os';
import { styleText } from 'node:util';
import type { ExitCode, Io, RemoteFront } from '../cli/io.js';
import { nd7Home } from '../recorder/home-path.js';
import * as frames from './frames.js';
import type { FromFront, FrontRequest } from './frames.js';
import { RemoteLauncher, type Channels } from './launcher.js';

/** What a seat asks of its host. */
export interface Host {
  /** Makes it findable for the next front: one that has ended is followed at once. */
  opened(): Promise<void>;
  later(work: () => void): void;
}

/** The front of one session, as this process knows it: what it was asked for, what it may be told, and its end. */
export class Seat implements RemoteFront {
  readonly #channels: Channels[];
  #attempts = 0;
  #launcher: RemoteLauncher | undefined;
  #printed: (() => void)[] = [];
  #hasSaid = false;
  #end: Buffer | undefined;
  #isLost = false;
  /** When the front has been let go. */
  #released: Promise<void> | undefined;

  /** `channels` are open files: this process's ends, of each attempt to launch. */
  constructor(
    private readonly control: Socket,
    private readonly request: FrontRequest,
    channels: readonly Channels[],
    private readonly host: Host,
  ) {
    this.#channels = [...channels];
  }

  readonly start = (path: string): ChildProcess => {
    const channels = this.#channels.shift();
    if (channels === undefined) throw new Error('the front has no channels left for another start');
    const attempt = this.#attempts++;
    const launcher = new RemoteLauncher(
      {
        start: () => this.#send(frames.launch(attempt, path)),
        signal: (number) => this.#send(frames.signal(number)),
      },
      channels,
    );
    this.#launcher = launcher;
    if (this.#isLost) setImmediate(() => launcher.lost());
    return launcher as unknown as ChildProcess;
  };

  /** Has the front start the first launcher while its plan is still made; `start` says that it has one. */
  prepare(path: string): void {
    if (this.request.protocol >= 2) this.#send(frames.prepare(this.#attempts, path));
  }

  printed(): Promise<void> {
    if (!this.#hasSaid || this.#isLost) return Promise.resolve();
    this.#hasSaid = false;
    this.#send(frames.flush());
    return new Promise((resolve) => this.#printed.push(resolve));
  }

  end(by: EndedBy): void {
    this.#end = endOf(by);
  }

  release(by: EndedBy): Promise<void> {
    return this.#letGo(endOf(by));
  }

  later(work: () => void): void {
    this.host.later(work);
  }

  /** What the front says once it has asked. */
  take(frame: FromFront): void {
    if (frame.kind === 'launched') this.#launcher?.launched(frame.pid);
    else if (frame.kind === 'exited') this.#launcher?.exited(frame.status);
    else if (frame.kind === 'printed') this.#printed.shift()?.();
    else throw new frames.FrameError('a second request');
  }

  /** The front has gone, and with it its launcher. */
  lost(): void {
    this.#isLost = true;
    for (const resolve of this.#printed.splice(0)) resolve();
    this.#launcher?.lost();
  }

  /** Has the front run the command line by the CLI. */
  refuse(why: string): void {
    this.#end = frames.refuse(why);
  }

  /** The end of a session here, when all is put away: the front ends, where it has not by now. */
  async leave(otherwise: ExitCode): Promise<void> {
    for (const fd of this.#channels.splice(0).flat()) closeSync(fd);
    this.#launcher?.drop();
    await this.#letGo(this.#end ?? frames.end({ code: otherwise }));
  }

  /** The front's last word, once there is a host for the next one. */
  #letGo(end: Buffer): Promise<void> {
    this.#released ??= this.host.opened().then(() => {
      this.control.end(end);
      this.#isLost = true;
    });
    return this.#released;
  }

  /** What a command may do with the terminal of the front. */
  io(isJson: boolean): Io & { exitCode(): ExitCode } {
    const { environment, cwd, terminals } = this.request;
    const print = (text: string): void => {
      // The log of the host hears what comes too late for a front.
      if (this.#released !== undefined) return void process.stderr.write(text);
      this.#hasSaid = true;
      this.#send(frames.say(text));
    };
    let exit: ExitCode = 0;
    return {
      home: nd7Home({ ...environment }),
      isJson,
      isTerminal: terminals[1],
      columns: 80,
      env: { ...environment },
      cwd,
      isTty: (fd) => terminals[fd],
      ring: () => print('\u0007'),
      front: this,
      // `nd7 run` prints nothing on standard output: that is the program's.
      out: (line = '') => print(`${line}\n`),
      err: (line = '') => print(`${line}\n`),
      json: (value) => print(`${JSON.stringify(value)}\n`),
      paint: (style, text) => (terminals[2] && environment['NO_COLOR'] === undefined ? styleText(style, text) : text),
      progress: () => ({ update: () => undefined, end: () => undefined }),
      setExit: (code) => {
        if (code > exit) exit = code;
      },
      exitCode: () => exit,
    };
  }

  #send(bytes: Buffer): void {
    if (!this.#isLost && !this.control.destroyed) this.control.write(bytes);
  }
}

type EndedBy = Parameters<RemoteFront['end']>[0];

function endOf({ code, signal }: EndedBy): Buffer {
  return frames.end(signal === null ? { code: code ?? 1 } : { signal: constants.signals[signal] });
}
