import type { HostFault, Source } from '@nd7/policy';
import type { HelloFault } from './client-hello.js';

/** How a program inside asked. */
export type Via =
  | 'connect'
  | 'http'
  | 'socks5'
  | 'endpoint'
  | 'loopback'
  | 'terminate' // a request on a tunnel whose TLS ends here, to put a credential on
  | 'dns' // for the address of a name
  | 'transparent'; // by connecting to that address, as if there were no proxy

/** Why a request was refused or a tunnel cut; the words stand in the log, so they only grow. */
export type RefusalReason =
  | HostFault
  | 'bad-port'
  | 'bad-request' // no request this proxy knows, or one that contradicts itself (Host header, two of them, a body without end)
  | 'no-rule' // nothing in the policy names the host at this port
  | 'denied' // a rule names it to refuse it
  | 'loopback' // a service of the host's loopback that is not granted
  | 'no-address' // the name resolves to nothing
  | 'address' // the name resolves to an address that is never dialled (loopback, link-local, metadata, own, private where not allowed)
  | 'unrecorded' // the decision could not be recorded, and the policy says that it must be
  | 'no-credential' // the secret to put on could not be read outside
  | 'other-name' // the tunnel's ClientHello names another host than was asked for
  | 'no-hello' // the tunnel said nothing in time
  | HelloFault;

/** Where an address is reached, and at which port. */
export interface Place {
  address: string;
  port: number;
}

/** The two ends of a connection from inside: the program's, and the listener's as it was reached. */
export interface Ends {
  from: Place;
  to: Place;
  /** No connection: a datagram, whose sender's end is anybody's a moment later. */
  isDatagram?: boolean;
}

/** Who has made a connection, as whoever started the proxy has found out. */
export interface Asker {
  /** The members of an entry that say so. */
  entry: Readonly<Record<string, unknown>>;
  /** To askers with the same one the same answer is one that repeats. */
  key: string;
}

/** A connection to a host that has ended. */
export interface EndedConnection {
  /** Its number in the session, which the answer that let it through has too; null where it served several requests. */
  connection: number | null;
  via: Via;
  host: string;
  port: number;
  asker: Asker | undefined;
  /** Bytes to the host and from it, TLS and all; null where what moved them was lost. */
  sent: number | null;
  received: number | null;
  /** From when the host had answered. */
  ms: number;
}

/** One answer of the proxy, as it goes into the session's log (class `decision`). */
export interface EgressDecision {
  via: Via;
  /** Host in the form of `parseHost`; as it was said, cut to 253 characters, where it is none. */
  host: string;
  /** Null where none could be read. */
  port: number | null;
  verdict: 'allow' | 'deny';
  /** Null where it was let through. */
  reason: RefusalReason | null;
  /** The rule that decided; null where none did. */
  source: Source | null;
  /** Addresses that the name stood for and that were checked; in them is the one dialled. Empty where nothing was looked up. */
  addresses: string[];
  /** Where a connection of its own follows: its number in the session. */
  connection?: number;
  /** Who asked, where somebody finds that out. */
  asker?: Asker;
}

/** Thrown inside the proxy to end a request: what the program is told and the log says. */
export class Refusal extends Error {
  constructor(
    readonly reason: RefusalReason,
    /** One sentence for the program inside: what, and what to do. */
    message: string,
    readonly source: Source | null = null,
    readonly addresses: string[] = [],
    cause?: unknown,
  ) {
    super(message, { cause });
    this.name = 'Refusal';
  }
}

/** The other end could not be reached: no decision, a fact of the network. */
export class Unreachable extends Error {
  constructor(
    readonly code: 'refused' | 'unreachable' | 'timeout',
    message: string,
  ) {
    super(message);
    this.name = 'Unreachable';
  }
}
