import { spawn, type ChildProcess } from 'node:child_process';
import { Socket, type Server } from 'node:net';
import type { Duplex } from 'node:stream';
import type { Ends, Place } from './decision.js';

/** What went through a connection whose other end was there. */
export interface Moved {
  sent: number;
  received: number;
  ms: number;
}

/** What the relay asks and tells; a link is one connection from inside, by the number that the relay gave it. */
export interface RelayFront {
  /** A program has connected at a listener, from and to these addresses of the session's, and said this: the whole head of a CONNECT, or as much as was waited for. */
  asked(link: number, listener: number, ends: Ends, said: Buffer): void;
  /** What has come through the tunnel so far. */
  hello(link: number, bytes: Buffer): void;
  /** What was still wanted of that did not come in time. */
  silent(link: number): void;
  /** No address could be reached; `errno` is the last one's, 0 where none answered in time. */
  failed(link: number, errno: number): void;
  /** `moved`: where the other end was there. */
  ended(link: number, moved?: Moved): void;
  /** A connection that the relay does not serve, as it was accepted: nothing of what it says has been read. */
  handed(link: number, listener: number, socket: Socket): void;
  /** The relay has ended though nobody closed it, and its connections with it. */
  lost(how: RelayEnd): void;
}

/** How a relay ended. */
export interface RelayEnd {
  code: number | null;
  signal: string | null;
}

/** How a listener's connections begin: `first`: the program speaks first; `atOnce`: the front is asked before anything is said. */
export type Beginning = 'first' | 'atOnce';

const TOLD = { ask: 1, hello: 2, silent: 3, failed: 4, ended: 5 } as const;
const ORDER = { hand: 1, wait: 2, dial: 3, need: 4, go: 5, cut: 6, last: 7, over: 8 } as const;
const DIAL_FLAG = { hello: 1, established: 2 } as const;
const HEAD = 12;
/** FRAME_MAX and ADDRESSES_MAX of native/relay/src/relay.h. */
const MAX_ORDER = 4096;
const MAX_ADDRESSES = 16;
/** The longest is one with a whole hello. */
const MAX_FRAME = 32 << 10;

/** The program that moves the bytes of tunnels: native/relay. It knows no rules. */
export class Relay {
  readonly #child: ChildProcess;
  readonly #channel: Duplex;
  readonly #front: RelayFront;
  #bytes: Buffer = Buffer.alloc(0);
  #isOver = false;

  private constructor(child: ChildProcess, front: RelayFront) {
    this.#child = child;
    this.#front = front;
    this.#channel = child.stdio[3] as Duplex;
    this.#channel.on('data', (bytes: Buffer) => this.#take(bytes)).on('error', () => undefined);
    child.on('message', ({ handed, listener }: { handed: number; listener: number }, socket) => {
      if (!(socket instanceof Socket)) return;
      if (this.#isOver) socket.destroy();
      else front.handed(handed, listener, socket);
    });
    child.once('exit', (code, signal) => {
      const isLost = !this.#isOver;
      this.close();
      if (isLost) front.lost({ code, signal });
    });
    child.unref();
    child.channel?.unref();
    (this.#channel as Socket).unref();
  }

  /** Starts it and gives it listeners, which then are none of this process's any more. Undefined where it cannot be started. */
  static start(
    program: string,
    listeners: readonly { server: Server; beginning: Beginning }[],
    { patienceMs, most, front }: { patienceMs: number; most: number; front: RelayFront },
  ): Relay | undefined {
    const kinds = listeners.map(({ beginning }) => beginning.charAt(0)).join('');
    const child = spawn(program, [String(Math.ceil(patienceMs)), String(most), kinds], {
      stdio: ['ignore', 'ignore', 'inherit', 'pipe', 'ipc'],
      env: {},
      cwd: '/',
      // What a terminal sends is for the program inside: tunnels go on where that one does.
      detached: true,
    });
    child.on('error', () => undefined);
    if (child.pid === undefined) return undefined;
    listeners.forEach(({ server }, listener) => {
      child.send({ listener }, server, () => server.close());
    });
    return new Relay(child, front);
  }

  get pid(): number {
    return this.#child.pid as number;
  }

  /** Gives the connection over: `handed` follows. */
  hand(link: number): void {
    this.#order(ORDER.hand, link);
  }

  /** Asks again when the program has said something. */
  wait(link: number): void {
    this.#order(ORDER.wait, link);
  }

  /**
   * Dials the places in turn. `head`: so many bytes of what was said are taken as the request for it, and the program is told when the other
   * end is there. `hello`: nothing goes out before `go`, but for a hello that is plainly for the host `name`, of which the front is not asked.
   */
  dial(
    link: number,
    places: readonly Place[],
    { head, hello, name = '' }: { head: number; hello: boolean; name?: string },
  ): void {
    const from = 12 + name.length;
    const body = Buffer.alloc(from + Math.min(places.length, MAX_ADDRESSES) * 18);
    body.writeUInt32LE((hello ? DIAL_FLAG.hello : 0) | (head > 0 ? DIAL_FLAG.established : 0), 0);
    body.writeUInt32LE(head, 4);
    body.writeUInt32LE(name.length, 8);
    body.write(name, 12, 'latin1');
    places.slice(0, MAX_ADDRESSES).forEach(({ address, port }, i) => {
      body.set(addressBytes(address), from + i * 18);
      body.writeUInt16LE(port, from + 16 + i * 18);
    });
    this.#order(ORDER.dial, link, body);
  }

  /** Shows the hello when it has so many bytes. */
  need(link: number, bytes: number): void {
    this.#order(ORDER.need, link, uint32(bytes));
  }

  /** Joins the two ends. */
  go(link: number): void {
    this.#order(ORDER.go, link);
  }

  cut(link: number, reset = false): void {
    this.#order(ORDER.cut, link, uint32(reset ? 1 : 0));
  }

  /** Says the last that the program hears. */
  last(link: number, text: string): void {
    this.#order(ORDER.last, link, Buffer.from(text).subarray(0, MAX_ORDER - HEAD));
  }

  /** Ends every connection; of each it is told at once. */
  over(): void {
    this.#order(ORDER.over, 0);
  }

  /** Ends every connection, and the relay. Killed, since one that is stopped hears nothing. */
  close(): void {
    this.#isOver = true;
    this.#child.kill('SIGKILL');
    this.#channel.destroy();
    if (this.#child.connected) this.#child.disconnect();
  }

  #order(kind: number, link: number, body: Uint8Array = Buffer.alloc(0)): void {
    if (this.#isOver) return;
    const frame = Buffer.allocUnsafe(HEAD + body.length);
    frame.writeUInt32LE(HEAD - 4 + body.length, 0);
    frame.writeUInt32LE(kind, 4);
    frame.writeUInt32LE(link, 8);
    frame.set(body, HEAD);
    this.#channel.write(frame);
  }

  #take(bytes: Buffer): void {
    this.#bytes = this.#bytes.length === 0 ? bytes : Buffer.concat([this.#bytes, bytes]);
    let at = 0;
    while (this.#bytes.length - at >= HEAD) {
      const end = at + 4 + this.#bytes.readUInt32LE(at);
      if (end - at > MAX_FRAME || end - at < HEAD) return void this.#child.kill('SIGKILL');
      if (end > this.#bytes.length) break;
      this.#read(
        this.#bytes.readUInt32LE(at + 4),
        this.#bytes.readUInt32LE(at + 8),
        this.#bytes.subarray(at + HEAD, end),
      );
      at = end;
    }
    this.#bytes = this.#bytes.subarray(at);
  }

  #read(kind: number, link: number, body: Buffer): void {
    if (this.#isOver) return;
    if (kind === TOLD.ask && body.length >= 20) {
      const ends = { to: placeAt(body, 4), from: placeAt(body, 12) };
      this.#front.asked(link, body.readUInt32LE(0), ends, body.subarray(20));
    } else if (kind === TOLD.hello) this.#front.hello(link, body);
    else if (kind === TOLD.silent) this.#front.silent(link);
    else if (kind === TOLD.failed && body.length === 4) this.#front.failed(link, body.readUInt32LE(0));
    else if (kind === TOLD.ended) this.#front.ended(link, movedOf(body));
    else this.#child.kill('SIGKILL');
  }
}

function placeAt(body: Buffer, at: number): Place {
  return { address: [3, 2, 1, 0].map((i) => body[at + i]).join('.'), port: body.readUInt32LE(at + 4) };
}

function movedOf(body: Buffer): Moved | undefined {
  if (body.length < 20) return undefined;
  const [sent, received] = [body.readBigUInt64LE(0), body.readBigUInt64LE(8)].map(Number) as [number, number];
  return { sent, received, ms: body.readUInt32LE(16) };
}

function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value);
  return bytes;
}

/** IPv6 in 16 bytes, IPv4 as ::ffff:…; of an address in the form of `parseHost`. */
export function addressBytes(address: string): Buffer {
  if (!address.includes(':'))
    return Buffer.from([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, ...address.split('.').map(Number)]);
  const [before = [], after = []] = address.split('::').map((half) => half.split(':').filter((group) => group !== ''));
  const groups = [...before, ...Array<string>(8 - before.length - after.length).fill('0'), ...after];
  return Buffer.from(groups.flatMap((group) => [parseInt(group, 16) >> 8, parseInt(group, 16) & 0xff]));
}
