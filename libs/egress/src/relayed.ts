import { closeSync } from 'node:fs';
import { createServer, type Server, type Socket } from 'node:net';
import { getSystemErrorName } from 'node:util';
import { duplicate } from '@nd7/kernel';
import { answerText } from './answer.js';
import { readConnect } from './connect-head.js';
import { Refusal, Unreachable, type Ends, type Via } from './decision.js';
import { alternate, notReached, unreachable } from './dial.js';
import type { Egress } from './proxy.js';
import { Relay, type Moved, type RelayEnd, type RelayFront } from './relay.js';
import type { Passed, Target } from './target.js';
import { neededHello } from './tunnel.js';
import { HANDSHAKE, transparentTarget } from './transparent.js';

/** A session is given so many relays: one that ends again and again is ended by somebody. */
const MOST_RELAYS = 5;
/** So long the relay is waited for at the end; it answers at once. */
const LATE_MS = 1_000;

/** What a listener's connections mean: requests to a proxy, hosts by their address inside, or one port of this machine's loopback. */
export type Meaning = 'proxy' | 'transparent' | Target;

interface Heard {
  server: Server;
  /** The listener once more: a relay's are its alone, and go with it. */
  kept?: number | undefined;
  meaning: Meaning;
  /** Takes what the relay does not serve. */
  take: (socket: Socket) => void;
}

/** One connection that the relay holds. */
interface Link {
  via: Via;
  /** Of a program that asked for a tunnel: its request's length, and that it hears why there is none. */
  head: number;
  admitted?: Passed;
  /** When it was dialled. */
  since?: number;
  /** Lets the address that was connected to mean another name. */
  release?: () => void;
}

/**
 * Decides for the relay. Tunnels that are asked for plainly are its: by CONNECT, by the address of a name, to a port of loopback. Everything
 * else it hands over as it was accepted, and this process serves it as if there were no relay.
 */
export class Relayed implements RelayFront {
  readonly #egress: Egress;
  readonly #program: string;
  readonly #most: number;
  /** In the order of the relay's listeners, once it is started. */
  #heard: Heard[] = [];
  readonly #links = new Map<number, Link>();
  #relay: Relay | undefined;
  #isStarted = false;
  #started = 0;
  #allEnded: () => void = () => undefined;

  constructor(egress: Egress, program: string, most: number) {
    this.#egress = egress;
    this.#program = program;
    this.#most = most;
  }

  /** Has a listener served by the relay, which is started by the first connection of all: most sessions have none. */
  add(heard: Heard): void {
    this.#heard.push(heard);
    this.#await(heard);
  }

  close(): void {
    this.#isStarted = true;
    this.#relay?.close();
    this.#letGo();
  }

  /** Ends every link, and resolves when all that went through them has been told, or cannot be any more. */
  finish(): Promise<void> {
    if (this.#relay === undefined || this.#links.size === 0) return Promise.resolve();
    return new Promise((done) => {
      const late = setTimeout(() => {
        this.#forget();
        done();
      }, LATE_MS);
      this.#allEnded = () => {
        clearTimeout(late);
        done();
      };
      this.#relay?.over();
    });
  }

  asked(id: number, listener: number, ends: Ends, said: Buffer): void {
    const meaning = this.#heard[listener]?.meaning;
    if (meaning === 'proxy') return this.#connect(id, ends, said);
    if (meaning === 'transparent') return this.#transparent(id, ends, said);
    if (meaning === undefined) return this.#relay?.cut(id);
    void this.#open(id, this.#linked(id, ends, { via: 'loopback', head: 0 }), meaning);
  }

  #linked(id: number, ends: Ends, link: Link): Link {
    this.#links.set(id, link);
    this.#egress.claim(link, ends);
    return link;
  }

  hello(id: number, bytes: Buffer): void {
    const link = this.#links.get(id);
    if (link?.admitted === undefined) return;
    try {
      const needed = neededHello(bytes, link.admitted);
      if (needed === 0) this.#relay?.go(id);
      else this.#relay?.need(id, needed);
    } catch (error) {
      this.#refuse(id, link, error as Refusal);
    }
  }

  silent(id: number): void {
    const link = this.#links.get(id);
    if (link?.admitted === undefined) return;
    const { target, source, addresses } = link.admitted;
    const text = `the tunnel to ${target.host} did not say what it is in time`;
    this.#refuse(id, link, new Refusal('no-hello', text, source, addresses));
  }

  failed(id: number, errno: number): void {
    const link = this.#links.get(id);
    if (link?.admitted === undefined) return;
    const { target } = link.admitted;
    const within = this.#egress.patienceMs;
    this.#fail(id, link, errno === 0 ? notReached(target, within) : unreachable(target, getSystemErrorName(-errno)));
  }

  ended(id: number, moved?: Moved): void {
    const link = this.#links.get(id);
    link?.release?.();
    this.#links.delete(id);
    if (link?.admitted !== undefined && moved !== undefined) this.#egress.over(link.admitted, moved);
    if (this.#links.size === 0) this.#allEnded();
  }

  handed(id: number, listener: number, socket: Socket): void {
    // Node makes it as if it were a client's.
    socket.allowHalfOpen = true;
    const heard = this.#heard[listener];
    const link = this.#links.get(id);
    if (link !== undefined) this.#egress.claimLike(socket, link);
    if (heard === undefined) socket.destroy();
    else heard.take(socket);
    this.ended(id);
  }

  lost(how: RelayEnd): void {
    const tunnels = [...this.#links.values()].filter(({ admitted }) => admitted !== undefined).length;
    this.#forget();
    this.#relay = undefined;
    const goesOn = this.#started < MOST_RELAYS && this.#reopen();
    if (!goesOn) this.#letGo();
    this.#egress.lost({ ...how, tunnels, goesOn });
  }

  /** What went through its links nobody knows. */
  #forget(): void {
    for (const [id, { admitted, since }] of this.#links) {
      if (admitted !== undefined && since !== undefined)
        this.#egress.over(admitted, { sent: null, received: null, ms: Math.round(performance.now() - since) });
      this.ended(id);
    }
  }

  /** Hears its listeners again: the next connection starts another relay. False where that cannot be. */
  #reopen(): boolean {
    if (this.#heard.some(({ kept }) => kept === undefined)) return false;
    for (const heard of this.#heard) {
      const { allowHalfOpen } = heard.server as unknown as { allowHalfOpen: boolean };
      heard.server.close();
      heard.server = createServer({ allowHalfOpen }, heard.take).on('error', () => undefined);
      heard.server.listen({ fd: duplicate(heard.kept as number) }).unref();
      this.#await(heard);
    }
    this.#isStarted = false;
    return true;
  }

  /** From now on nobody connects to them any more. */
  #letGo(): void {
    for (const heard of this.#heard) {
      if (heard.kept === undefined) continue;
      closeSync(heard.kept);
      delete heard.kept;
      heard.server.close();
    }
  }

  #await({ server }: Heard): void {
    server.once('connection', () => queueMicrotask(() => this.#start()));
  }

  /** Ends the links to what is not let through any more; answers how many. */
  recheck(isOpen: (open: Passed) => boolean): number {
    const lost = [...this.#links].filter(([, { admitted }]) => admitted !== undefined && !isOpen(admitted));
    for (const [id] of lost) this.#relay?.cut(id);
    return lost.length;
  }

  #start(): void {
    if (this.#isStarted) return;
    this.#isStarted = true;
    // One that is fed by another of this process's own is none of the kernel's.
    this.#heard = this.#heard.filter(({ server }) => server.listening);
    if (this.#heard.length === 0) return;
    for (const heard of this.#heard) heard.kept ??= copyOf(heard.server);
    this.#started++;
    const listeners = this.#heard.map(({ server, meaning }) => ({
      server,
      beginning: meaning === 'proxy' ? ('first' as const) : ('atOnce' as const),
    }));
    const how = { patienceMs: this.#egress.patienceMs, most: this.#most, front: this };
    this.#relay = Relay.start(this.#program, listeners, how);
  }

  #connect(id: number, ends: Ends, said: Buffer): void {
    const asked = readConnect(said);
    if (asked === undefined || this.#egress.isTerminated(asked.target)) return this.#relay?.hand(id);
    void this.#open(id, this.#linked(id, ends, { via: 'connect', head: asked.length }), asked.target);
  }

  #transparent(id: number, ends: Ends, said: Buffer): void {
    const target = transparentTarget(this.#egress, ends.to.address, ends.to.port);
    if (target === undefined || this.#egress.isTerminated(target)) return this.#relay?.hand(id);
    let link = this.#links.get(id);
    if (link === undefined) {
      link = this.#linked(id, ends, { via: 'transparent', head: 0 });
      if (target.kind === 'name') link.release = this.#egress.pool.hold(target.host);
    }
    void this.#look(id, link, target, said);
  }

  async #look(id: number, link: Link, target: Target, said: Buffer): Promise<void> {
    const { allow, raw } = await this.#egress.decide(target, link);
    if (this.#links.get(id) !== link) return;
    if (!allow) return this.#relay?.hand(id);
    if (!raw && said.length === 0) return this.#relay?.wait(id);
    if (!raw && said[0] !== HANDSHAKE) return this.#relay?.hand(id);
    void this.#open(id, link, target);
  }

  async #open(id: number, link: Link, target: Target): Promise<void> {
    try {
      const admitted = await this.#egress.admit(link.via, target, link);
      if (this.#links.get(id) !== link) return;
      // A grant that ended while the decision was written.
      if (!this.#egress.isOpen(admitted))
        throw new Unreachable('refused', `${target.host} may not be reached any more`);
      Object.assign(link, { admitted, since: performance.now() });
      const places = alternate(admitted.addresses).map((address) => this.#egress.at(address, target.port));
      // Of an address no name can be in the hello.
      const name = target.kind === 'name' ? target.host : '';
      this.#relay?.dial(id, places, { head: link.head, hello: !admitted.raw, name });
    } catch (error) {
      if (this.#links.get(id) === link) this.#fail(id, link, error);
    }
  }

  /** Only who asked for a tunnel in words can be told in words. */
  #fail(id: number, link: Link, error: unknown): void {
    if (link.via === 'connect') this.#relay?.last(id, answerText(error));
    else this.#relay?.cut(id, link.via === 'transparent');
  }

  /** The tunnel is open already, and ends. */
  #refuse(id: number, link: Link, refusal: Refusal): void {
    const { via, admitted } = link;
    this.#relay?.cut(id);
    if (admitted !== undefined) this.#egress.refused(via, admitted.target, refusal, link).catch(() => undefined);
  }
}

/** Undefined where there can be none: a relay that ends then takes the way out with it. */
function copyOf(server: Server): number | undefined {
  const { fd = -1 } = (server as unknown as { _handle?: { fd?: number } })._handle ?? {};
  try {
    return duplicate(fd);
  } catch {
    return undefined;
  }
}
