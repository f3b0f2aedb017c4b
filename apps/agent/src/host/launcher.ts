import type { ChildProcess } from 'node:child_process';
import { createSocket } from 'node:dgram';
import { EventEmitter } from 'node:events';
import { closeSync, writeSync } from 'node:fs';
import { Server, Socket } from 'node:net';
import { constants } from 'node:os';
import { receiveDescriptors, type Received } from '@nd7/kernel';

/** This process's ends of the channels of one launcher: its plan, the sockets of its session, its supervisor, its broker. */
export type Channels = readonly [number, number, number, number];

/** A line of the channel by which sockets come, as Node has it between processes. */
interface Message {
  cmd?: string;
  type?: string;
  msg?: Message;
  connected?: number;
  failed?: number;
}

/** A server inside is found so much later. */
const POLL_MS = 2;
/** And a connection without a network of the session's own (T2), for as long as it lives. */
const HEAR_MS = 8;

/** What there is to do with the process that a front has started. */
export interface Handle {
  /** Has the front start it. */
  start(): void;
  signal(number: number): void;
}

/**
 * A launcher that is a child of somebody else, as `launch` of `@nd7/confine` knows its own: pid, channels 3, 5 and 6, signals, and the events
 * `message` (a socket of the session), `error` and `close`.
 */
export class RemoteLauncher extends EventEmitter {
  pid: number | undefined;
  connected = true;
  readonly stdio: ChildProcess['stdio'];
  readonly #sockets: number;
  readonly #open: Set<Socket>;
  #ended: { code: number | null; signal: NodeJS.Signals | null } | undefined;
  #isClosed = false;
  #rest = '';
  /** Answers that are to come. */
  #asked = 0;
  #hears = false;
  #poll: NodeJS.Timeout | undefined;

  constructor(
    private readonly handle: Handle,
    [plan, sockets, supervisor, broker]: Channels,
  ) {
    super();
    const [pipe, ...others] = [plan, supervisor, broker].map((fd) => new Socket({ fd })) as [Socket, Socket, Socket];
    this.stdio = [null, null, null, pipe, null, ...others] as unknown as ChildProcess['stdio'];
    this.#sockets = sockets;
    this.#open = new Set([pipe, ...others]);
    for (const socket of this.#open) {
      socket.on('error', () => undefined);
      socket.once('close', () => {
        this.#open.delete(socket);
        this.#perhapsClose();
      });
    }
    // It hands its sockets out before it says that it is ready, and whoever hears that looks for them.
    pipe.on('data', () => this.#takeSockets());
    // Nobody else hears a supervisor or broker that a plan has none of.
    for (const other of others) other.resume();
    handle.start();
  }

  /** Where it was started, or a negated errno. */
  launched(pid: number): void {
    if (pid > 0) {
      this.pid = pid;
      return;
    }
    this.#ended = { code: null, signal: null };
    const error = Object.assign(new Error('the launcher could not be started'), { errno: pid });
    this.emit('error', error);
    this.drop();
  }

  /** How it ended: a status of wait(2). */
  exited(status: number): void {
    const number = status & 0x7f;
    const [name] = Object.entries(constants.signals).find(([, value]) => value === number) ?? [];
    this.#ended =
      number === 0
        ? { code: (status >> 8) & 0xff, signal: null }
        : { code: null, signal: (name ?? 'SIGKILL') as NodeJS.Signals };
    this.#perhapsClose();
  }

  /** Its front has gone: the launcher sees that by its pipe. */
  lost(): void {
    this.#ended ??= { code: null, signal: 'SIGKILL' };
    this.drop();
    this.#perhapsClose();
  }

  kill(name: NodeJS.Signals | number = 'SIGTERM'): boolean {
    if (this.#ended === undefined) this.handle.signal(typeof name === 'number' ? name : constants.signals[name]);
    return this.#ended === undefined;
  }

  /** Closes its channels, which ends it. */
  drop(): void {
    for (const socket of this.#open) socket.destroy();
  }

  /** From now on it speaks by itself. */
  hear(): void {
    this.#hears = true;
    this.#poll ??= setInterval(() => this.#takeSockets(), HEAR_MS);
  }

  /** As to a child of this process's own: a line of JSON. Whoever says something waits for one answer. */
  send(message: object, done?: (error: Error | null) => void): boolean {
    try {
      writeSync(this.#sockets, `${JSON.stringify(message)}\n`);
    } catch (error) {
      done?.(error as Error);
      return false;
    }
    this.#asked++;
    this.#poll ??= setInterval(() => this.#takeSockets(), POLL_MS);
    done?.(null);
    return true;
  }

  /** Messages and the sockets with them. Node does not read this channel: a read of its own would lose what comes with the bytes. */
  #takeSockets(): void {
    for (let received = this.#receive(); received !== undefined; received = this.#receive()) {
      const lines = (this.#rest + Buffer.from(received.bytes).toString()).split('\n');
      this.#rest = lines.pop() ?? '';
      for (const line of lines) this.#say(JSON.parse(line) as Message, received.descriptors);
      for (const fd of received.descriptors) closeSync(fd);
    }
    if (this.#asked === 0 && !this.#hears) this.#quiet();
  }

  #receive(): Received | undefined {
    const received = this.#isClosed ? undefined : receiveDescriptors(this.#sockets);
    return received?.bytes.length === 0 ? undefined : received;
  }

  /** `descriptors` loses the one that belongs to the message. */
  #say(message: Message, descriptors: number[]): void {
    const isAnswer = [message, message.msg].some((one) => one?.connected !== undefined || one?.failed !== undefined);
    if (isAnswer) this.#asked--;
    if (message.cmd !== 'NODE_HANDLE') return void this.emit('message', message);
    const fd = descriptors.shift();
    if (fd === undefined) return;
    if (message.type === 'net.Server') this.emit('message', message.msg, new Server().listen({ fd }));
    else if (message.type === 'net.Socket') this.emit('message', message.msg, new Socket({ fd }));
    else if (message.type === 'dgram.Socket') this.emit('message', message.msg, createSocket('udp4').bind({ fd }));
    else closeSync(fd);
  }

  #quiet(): void {
    clearInterval(this.#poll);
    this.#poll = undefined;
  }

  /** As Node does it: when the process has ended and its channels have been read to their end. */
  #perhapsClose(): void {
    if (this.#isClosed || this.#ended === undefined || this.#open.size > 0) return;
    this.#isClosed = true;
    this.connected = false;
    this.#quiet();
    closeSync(this.#sockets);
    this.emit('close', this.#ended.code, this.#ended.signal);
  }
}
