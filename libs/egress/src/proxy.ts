import { createHash, timingSafeEqual } from 'node:crypto';
import { Server, type Socket } from 'node:net';
import type { ConnectionOptions } from 'node:tls';
import type { Socket as Datagrams } from 'node:dgram';
import {
  decideHost,
  decideName,
  loopbackAddresses,
  portRule,
  type Credential,
  type Host,
  type HostDecision,
  type NetworkRules,
  type Source,
} from '@nd7/policy';
import type { SessionAuthority } from './authority.js';
import {
  Refusal,
  Unreachable,
  type Asker,
  type EgressDecision,
  type EndedConnection,
  type Ends,
  type Place,
  type Via,
} from './decision.js';
import { dial, dialInflow, directly, type Connect } from './dial.js';
import { Endpoint, type ReadSecret } from './endpoint.js';
import { HttpFront } from './http.js';
import { lookups, type Resolve } from './lookup.js';
import { NameServer } from './names.js';
import { AddressPool } from './pool.js';
import type { RelayEnd } from './relay.js';
import { Relayed, type Meaning } from './relayed.js';
import { answerSocks } from './socks.js';
import { admit, readHost, shown, sourceOf, type Admitted, type Passed, type Target } from './target.js';
import { endTls, type Terminated } from './terminate.js';
import { takeTransparent } from './transparent.js';
import { awaitHello, join, nextBytes } from './tunnel.js';

export interface EgressOptions {
  /** The rules of this moment: asked anew for each request, since grants come and go. Of an asker those that hold for it; else those that hold for anybody. */
  rules: (asker?: Asker) => NetworkRules;
  /** Finds out who has made a connection: asked once for each, as soon as it is there. */
  askerOf?: (ends: Ends) => Asker | undefined | Promise<Asker | undefined>;
  /** Told when a connection to a host has ended. */
  ended?: (connection: EndedConnection) => void;
  /**
   * Called once for each answer, before it takes effect. Where it throws, nothing goes out. `isRepeated`: the very same answer was recorded before, with
   * the same rule and addresses.
   */
  record: (decision: EgressDecision, isRepeated: boolean) => Promise<void>;
  /** Secret that every request must show (HTTP Basic or SOCKS password of the user `nd7`); absent where only the session can reach the listener. */
  token?: string;
  /** Connections from inside at once, over all listeners; more are closed unheard (1024). The relay holds as many besides. */
  most?: number;
  /** How long a client may take to say what it wants, and a server to accept (10 s each). */
  patienceMs?: number;
  /** For TLS towards servers, where the proxy speaks it itself: an organisation's own CA. */
  tls?: ConnectionOptions;
  /** Replaced where a test stands in for the internet. */
  resolve?: Resolve;
  at?: (address: string, port: number) => Place;
  /** The program that moves the bytes of tunnels (native/relay). Absent: this process does. */
  relay?: string | undefined;
  /** Told when that program has ended by itself, and its tunnels with it. */
  lost?: (relay: LostRelay) => void;
}

/** A relay that ended though its session goes on. */
export interface LostRelay extends RelayEnd {
  /** Tunnels that were open, or were being opened. */
  tunnels: number;
  /** Whether the next connection is served, by another one; else nothing gets out any more. */
  goesOn: boolean;
}

/** Answers that are known again. */
const MOST_RECORDED = 4096;

/** What the ways in (HTTP, SOCKS) have in common: decide, record, dial, check, join. */
export class Egress {
  readonly patienceMs: number;
  readonly token: string | undefined;
  /** Which addresses inside stand for which names. */
  readonly pool = new AddressPool();
  readonly #options: EgressOptions;
  readonly #http: HttpFront;
  readonly #names = new NameServer(this);
  readonly #endpoints: Endpoint[] = [];
  /** By host: what TLS for it ends in. */
  readonly #terminated = new Map<string, Terminated>();
  readonly #open = new Set<Socket>();
  /** Connections towards servers, and what was admitted when they were opened. */
  readonly #upstream = new Map<Socket, Passed>();
  /** Answers that have been recorded, as text. */
  readonly #recorded = new Set<string>();
  /** Who has made the connections from inside: by the socket, or by what stands for one that the relay holds. */
  readonly #askers = new WeakMap<object, Promise<Asker | undefined>>();
  #connections = 0;
  readonly #relayed: Relayed | undefined;
  readonly #connect: Connect;
  readonly #resolve: Resolve;
  #inside = 0;
  #isOver = false;

  constructor(options: EgressOptions) {
    this.#options = options;
    this.patienceMs = options.patienceMs ?? 10_000;
    this.token = options.token;
    this.#resolve = options.resolve ?? lookups({ withinMs: this.patienceMs });
    this.#http = new HttpFront(this);
    this.#connect = (address, port, onread) => {
      const place = this.at(address, port);
      return directly(place.address, place.port, onread);
    };
    // A token is read by what reads requests whole.
    if (options.relay !== undefined && options.token === undefined)
      this.#relayed = new Relayed(this, options.relay, this.#most);
  }

  /** Serves a listener: HTTP proxy requests and SOCKS5 on the same port. The listener may come from another network namespace. */
  serve(listener: Server): void {
    this.#acceptRelayed(listener, 'proxy', (socket) => void this.#greet(socket));
  }

  /** Serves a listener inside the session that stands for a credential's host (`way: endpoint`). */
  serveEndpoint(listener: Server, credential: Credential, read: ReadSecret): void {
    const endpoint = new Endpoint(this, credential.hosts[0] as string, credential, read, this.#options.tls ?? {});
    this.#endpoints.push(endpoint);
    this.#accept(listener, (socket) => endpoint.take(socket));
  }

  /**
   * From now on TLS for a credential's hosts ends here (`way: terminate`), on port 443 and by whatever way a program connects, and their
   * requests go on with the credential. Programs inside have to trust the authority, which speaks for these hosts.
   */
  terminate(credential: Credential, authority: SessionAuthority, read: ReadSecret): void {
    for (const host of credential.hosts) {
      const endpoint = new Endpoint(this, host, credential, read, this.#options.tls ?? {});
      this.#endpoints.push(endpoint);
      this.#terminated.set(host, { endpoint, authority });
    }
  }

  /** Serves a listener inside the session that stands for a port of this machine's own loopback: programs there use no proxy for it. */
  serveLoopback(listener: Server, port: number): void {
    const target = readHost('localhost', port);
    this.#acceptRelayed(listener, target, (socket) => {
      socket.pause();
      this.tunnel('loopback', socket, target, () => undefined).catch(() => socket.destroy());
    });
  }

  /** Serves the session's name server: what it is asked by datagrams and, on a listener, over TCP. */
  serveNames(opened: Server | Datagrams): void {
    if (!(opened instanceof Server)) return this.#names.serve(opened);
    this.#accept(opened, (socket) => void this.#names.take(socket).catch(() => socket.destroy()));
  }

  /** Serves a listener inside to which programs connect that know of no proxy: at addresses of the pool, or at ones that the policy lists. */
  serveTransparent(listener: Server): void {
    this.#acceptRelayed(
      listener,
      'transparent',
      (socket) => void takeTransparent(this, this.#http, socket).catch(() => socket.destroy()),
    );
  }

  /** Ends every connection and takes no more; the listeners are the caller's to close. */
  close(): void {
    this.#isOver = true;
    this.#relayed?.close();
    this.#http.close();
    for (const endpoint of this.#endpoints) endpoint.close();
    for (const socket of this.#open) socket.destroy();
  }

  /** Ends every connection, and resolves when all that went through them has been told. Nothing is served afterwards. */
  async finish(): Promise<void> {
    this.#isOver = true;
    const closed = [...this.#upstream.keys()].map((socket) => new Promise((done) => socket.once('close', done)));
    for (const socket of this.#open) socket.destroy();
    await Promise.all([...closed, this.#relayed?.finish()]);
  }

  /** Ends the open connections to what the rules of this moment no longer let through; answers how many those were. */
  recheck(): number {
    const lost = [...this.#upstream].filter(([, open]) => !this.isOpen(open));
    for (const [socket] of lost) socket.destroy();
    return lost.length + (this.#relayed?.recheck((open) => this.isOpen(open)) ?? 0);
  }

  /** Whether the rules of this moment let something through, for who asked. */
  isOpen(open: Open): boolean {
    return isOpen(this.#options.rules(open.asker), open);
  }

  /** A connection from inside is there. */
  claim(client: object, ends: Ends | undefined): void {
    const { askerOf } = this.#options;
    if (askerOf === undefined || ends === undefined) return;
    this.#askers.set(
      client,
      // Whoever cannot be told is nobody.
      (async () => askerOf(ends))().catch(() => undefined),
    );
  }

  /** Who made one connection has made the other one, too. */
  claimLike(client: object, like: object): void {
    const asker = this.#askers.get(like);
    if (asker !== undefined) this.#askers.set(client, asker);
  }

  /** Whether TLS for it ends here. */
  isTerminated(target: Target): boolean {
    return target.port === 443 && this.#terminated.has(target.host);
  }

  /** Where an address is reached. */
  at(address: string, port: number): Place {
    return this.#options.at?.(address, port) ?? { address, port };
  }

  /** What moves the bytes of tunnels has ended by itself. */
  lost(relay: LostRelay): void {
    if (!this.#isOver) this.#options.lost?.(relay);
  }

  /** Whether a program has shown the session's token; true where none is asked for. */
  isAdmitted(token: string | undefined): boolean {
    if (this.token === undefined) return true;
    const [shown, held] = [token ?? '', this.token].map((text) => createHash('sha256').update(text).digest());
    return timingSafeEqual(shown as Buffer, held as Buffer);
  }

  /** Decides and records; `client` is what asks. Throws a Refusal, which has been recorded. */
  async admit(via: Via, target: Target, client: object): Promise<Passed> {
    try {
      const asker = await this.#askers.get(client);
      const passed = { ...(await this.look(target, asker)), via, asker, connection: this.#numberOf(via, target) };
      const { source, addresses, connection } = passed;
      const answer = { via, ...seen(target), verdict: 'allow', reason: null, source, addresses } as const;
      await this.#record({ ...answer, ...(connection !== null && { connection }) }, asker);
      return passed;
    } catch (error) {
      throw error instanceof Refusal && error.reason !== 'unrecorded'
        ? await this.refused(via, target, error, client)
        : error;
    }
  }

  /** Requests that a credential is put on to share connections. */
  #numberOf(via: Via, target: Target): number | null {
    return via === 'endpoint' || via === 'terminate' || this.isTerminated(target) ? null : ++this.#connections;
  }

  /** What the rules say of a host and port for who asks, without looking anything up. */
  async decide(target: Target, client: object): Promise<HostDecision> {
    return decideHost(this.#options.rules(await this.#askers.get(client)), target, target.port);
  }

  /** Whether a host may be reached on some port. */
  isNamed(host: Host): boolean {
    return decideName(this.#options.rules(), host).allow;
  }

  /** The rule by which a name may be reached on some port. Throws a Refusal, of which nothing is recorded. */
  sourceOf(target: Target): Source {
    return sourceOf(target, this.#options.rules());
  }

  /** Who asks; undefined where nobody finds that out. */
  askerOf(client: object | undefined): Promise<Asker | undefined> | undefined {
    return client && this.#askers.get(client);
  }

  /** Records that a name was answered for, by a rule, or that it was not. Throws a Refusal where that cannot be. */
  recordName(host: string, by: Source | Refusal, asker: Asker | undefined): Promise<void> {
    const isRefused = by instanceof Refusal;
    const [reason, source] = isRefused ? [by.reason, by.source] : [null, by];
    const verdict = isRefused ? 'deny' : 'allow';
    return this.#record({ via: 'dns', host, port: null, verdict, reason, source, addresses: [] }, asker);
  }

  /** Decides and looks up again what was admitted and recorded already: for one more connection to the same host. Throws a Refusal. */
  look(target: Target, asker?: Asker): Promise<Admitted> {
    return admit(target, this.#options.rules(asker), this.#resolve);
  }

  /** Records a refusal and gives it back; `target` is what was asked for, as far as it could be read, and `client` what asked. */
  async refused(via: Via, target: Target | { said: string }, refusal: Refusal, client: object): Promise<Refusal> {
    const asked = 'said' in target ? { host: shown(target.said), port: null } : seen(target);
    const { reason, source, addresses } = refusal;
    await this.#record({ via, ...asked, verdict: 'deny', reason, source, addresses }, await this.#askers.get(client));
    return refusal;
  }

  /** Dials what was admitted. Throws Unreachable. */
  async dial(passed: Passed): Promise<Socket> {
    // What goes over it is read here, whatever the rule lets through.
    const socket = await dial(passed.target, passed.addresses, this.#connect, this.patienceMs);
    return this.#opened(socket, { ...passed, raw: false });
  }

  /** Tells that a connection to what was admitted has ended. */
  over(
    { connection, via, target: { host, port }, asker }: Passed,
    moved: Pick<EndedConnection, 'sent' | 'received' | 'ms'>,
  ): void {
    this.#options.ended?.({ connection, via, host, port, asker, ...moved });
  }

  #opened(socket: Socket, passed: Passed): Socket {
    const { target } = passed;
    const since = performance.now();
    this.#track(socket);
    this.#upstream.set(socket, passed);
    socket.once('close', () => {
      this.#upstream.delete(socket);
      const { bytesWritten: sent, bytesRead: received } = socket;
      this.over(passed, { sent, received, ms: Math.round(performance.now() - since) });
    });
    if (this.isOpen(passed)) return socket;
    // A grant that ended while the other end was reached.
    socket.destroy();
    throw new Unreachable('refused', `${target.host} may not be reached any more`);
  }

  /**
   * Opens a tunnel for a client that has asked for one: `accept` tells it yes once the other end has answered. Whoever then says anything
   * but a hello for the host that was asked for is cut before a byte has gone out. Throws a Refusal or Unreachable before `accept`.
   */
  async tunnel(via: Via, client: Socket, target: Target, accept: () => void): Promise<void> {
    const admitted = await this.admit(via, target, client);
    const terminated = this.isTerminated(target) ? this.#terminated.get(target.host) : undefined;
    if (terminated !== undefined) {
      accept();
      return endTls(this, via, client, admitted, terminated);
    }
    const { socket, inflow } = await dialInflow(target, admitted.addresses, this.#connect, this.patienceMs);
    const upstream = this.#opened(socket, admitted);
    try {
      if (client.destroyed) throw new Unreachable('refused', 'the program has gone');
      accept();
      if (!admitted.raw) upstream.write(await awaitHello(client, admitted, this.patienceMs));
      join(client, upstream, inflow);
    } catch (error) {
      upstream.destroy();
      client.destroy();
      if (error instanceof Refusal) await this.refused(via, target, error, client);
    }
  }

  get #most(): number {
    return this.#options.most ?? 1024;
  }

  /** As `#accept`; the relay takes those of the connections that are tunnels. */
  #acceptRelayed(listener: Server, meaning: Meaning, take: (socket: Socket) => void): void {
    const admit = this.#accept(listener, take);
    this.#relayed?.add({ server: listener, meaning, take: admit });
  }

  /** Hands on each connection from inside, as long as there are not too many. */
  #accept(listener: Server, take: (socket: Socket) => void): (socket: Socket) => void {
    const admit = (socket: Socket): void => {
      if (this.#isOver || this.#inside >= this.#most) {
        socket.destroy();
        return;
      }
      this.#inside++;
      socket.once('close', () => this.#inside--);
      if (!this.#askers.has(socket)) this.claim(socket, endsOf(socket));
      this.#track(socket);
      take(socket);
    };
    listener.on('connection', admit);
    return admit;
  }

  #track(socket: Socket): void {
    this.#open.add(socket);
    socket.setNoDelay(true);
    socket.on('error', () => socket.destroy());
    socket.once('close', () => this.#open.delete(socket));
  }

  async #greet(socket: Socket): Promise<void> {
    const first = await nextBytes(socket, this.patienceMs);
    if (first === undefined) {
      socket.destroy();
      return;
    }
    socket.unshift(first);
    if (first[0] !== 5) this.#http.take(socket);
    else await answerSocks(this, socket).catch(() => socket.destroy());
  }

  async #record({ connection, ...decision }: EgressDecision, asker: Asker | undefined): Promise<void> {
    const said = JSON.stringify([decision, asker?.key]);
    const all = { ...decision, ...(connection !== undefined && { connection }), ...(asker !== undefined && { asker }) };
    try {
      await this.#options.record(all, this.#recorded.has(said));
      if (this.#recorded.size >= MOST_RECORDED) this.#recorded.clear();
      this.#recorded.add(said);
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      throw new Refusal(
        'unrecorded',
        `the decision on ${decision.host} could not be recorded: ${why}`,
        decision.source,
      );
    }
  }
}

/** What was opened by the rules: where it is raw, one that lets TLS alone through is not enough. */
type Open = Pick<Passed, 'target' | 'raw' | 'asker'>;

/** Undefined where it has gone already. */
function endsOf({ remoteAddress, remotePort, localAddress, localPort }: Socket): Ends | undefined {
  if (remoteAddress === undefined || remotePort === undefined || localAddress === undefined || localPort === undefined)
    return undefined;
  return { from: { address: remoteAddress, port: remotePort }, to: { address: localAddress, port: localPort } };
}

function isOpen(rules: NetworkRules, { target, raw }: Open): boolean {
  if (loopbackAddresses(target.host) !== undefined) return portRule(rules, 'loopback', target.port) !== undefined;
  const decision = decideHost(rules, target, target.port);
  return decision.allow && (decision.raw || !raw);
}

function seen({ host, port }: Target): { host: string; port: number } {
  return { host, port };
}
