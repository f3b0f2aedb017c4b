import type { Socket as Datagrams, RemoteInfo } from 'node:dgram';
import type { Socket } from 'node:net';
import { answerQuery, CODE, readQuery, TYPE, type Query } from './dns-message.js';
import { Refusal, type Asker } from './decision.js';
import { TTL } from './pool.js';
import type { Egress } from './proxy.js';
import { readHost, shown } from './target.js';
import { nextBytes } from './tunnel.js';

/** Datagrams that wait for their answer to be recorded; more are dropped, and asked again. */
const MOST_WAITING = 256;
/** Longest query over TCP: a name, its type and an option are much less. */
const MAX_QUERY = 1024;
/** Answers that are known to stand in the record already. */
const MOST_KNOWN = 4096;
/** EDNS has one version (RFC 6891). */
const EDNS = 0;
/** What is recorded of a name is a host; its port is said later, when something connects. */
const NO_PORT = 443;

/**
 * The name server of a session: a name that may be reached is answered with an address of the pool, any other is not there. Nothing is asked
 * outside. Each answer is recorded before it is given, the same one once.
 */
export class NameServer {
  readonly #egress: Egress;
  readonly #known = new Map<string, Promise<void>>();
  #waiting = 0;

  constructor(egress: Egress) {
    this.#egress = egress;
  }

  /** Answers over UDP. */
  serve(datagrams: Datagrams): void {
    datagrams.on('error', () => undefined);
    datagrams.on('message', (bytes: Buffer, { port, address }: RemoteInfo) => {
      if (this.#waiting >= MOST_WAITING) return;
      this.#waiting++;
      const client = {};
      this.#egress.claim(client, { from: { address, port }, to: datagrams.address(), isDatagram: true });
      void this.answer(bytes, client)
        .then((answer) => answer && datagrams.send(answer, port, address, () => undefined))
        // The socket may have been closed meanwhile.
        .catch(() => undefined)
        .finally(() => this.#waiting--);
    });
  }

  /** Answers over TCP (RFC 1035 section 4.2.2): each message behind its length, one after the other. */
  async take(socket: Socket): Promise<void> {
    let held: Buffer = Buffer.alloc(0);
    for (;;) {
      const length = held.length < 2 ? undefined : held.readUInt16BE(0);
      if (length !== undefined && length > MAX_QUERY) break;
      if (length !== undefined && held.length >= 2 + length) {
        const answer = await this.answer(held.subarray(2, 2 + length), socket);
        if (answer === undefined) break;
        held = held.subarray(2 + length);
        const isTaken = socket.write(Buffer.concat([Buffer.of(answer.length >> 8, answer.length & 255), answer]));
        // Who asks and does not listen is asked to wait: what was answered would lie in memory here.
        if (!isTaken && !(await drained(socket, this.#egress.patienceMs))) break;
        continue;
      }
      const more = await nextBytes(socket, this.#egress.patienceMs);
      if (more === undefined) break;
      held = Buffer.concat([held, more]);
    }
    socket.destroy();
  }

  /** The answer to one message; undefined where it is no query. `client` is what it came by. */
  async answer(bytes: Uint8Array, client?: object): Promise<Uint8Array | undefined> {
    const query = readQuery(bytes);
    if ('fault' in query) return query.fault;
    if (query.edns !== undefined && query.edns !== EDNS) return answerQuery(query, CODE.badVersion);
    try {
      const name = await this.#admit(query, await this.#egress.askerOf(client));
      if (query.type !== TYPE.a && query.type !== TYPE.any) return answerQuery(query, CODE.ok);
      const address = this.#egress.pool.addressOf(name);
      return address === undefined ? answerQuery(query, CODE.failed) : answerQuery(query, CODE.ok, [address], TTL);
    } catch (error) {
      const isRefused = error instanceof Refusal && error.reason !== 'unrecorded';
      return answerQuery(query, isRefused ? CODE.noName : CODE.failed);
    }
  }

  /** The name, where it may be reached at all. Throws a Refusal, which has been recorded. */
  async #admit({ name }: Query, asker: Asker | undefined): Promise<string> {
    let answer;
    try {
      const target = readHost(name, NO_PORT);
      if (target.kind === 'ip') throw new Refusal('odd-address', `"${shown(name)}" is an address`);
      answer = { host: target.host, source: this.#egress.sourceOf(target) };
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      await this.#once(shown(name), error, asker);
      throw error;
    }
    await this.#once(answer.host, answer.source, asker);
    return answer.host;
  }

  /** Records an answer unless it stands there. One that could not be recorded is none. */
  #once(host: string, by: Refusal | Parameters<Egress['recordName']>[1], asker: Asker | undefined): Promise<void> {
    const [reason, source] = by instanceof Refusal ? [by.reason, by.source] : [null, by];
    const key = JSON.stringify([host.toLowerCase(), reason, source, asker?.key]);
    const known = this.#known.get(key);
    if (known !== undefined) return known;
    const recorded = this.#egress.recordName(host, by, asker);
    recorded.catch(() => this.#known.delete(key));
    if (this.#known.size >= MOST_KNOWN) this.#known.delete(this.#known.keys().next().value as string);
    this.#known.set(key, recorded);
    return recorded;
  }
}

/** Whether what was written has been taken within a time. */
function drained(socket: Socket, withinMs: number): Promise<boolean> {
  return new Promise((resolve) => {
    const done = (isTaken: boolean): void => {
      clearTimeout(timer);
      socket.off('drain', taken).off('close', over);
      resolve(isTaken);
    };
    const [taken, over] = [() => done(true), () => done(false)];
    const timer = setTimeout(over, withinMs);
    if (socket.destroyed) return done(false);
    socket.on('drain', taken).on('close', over);
  });
}
