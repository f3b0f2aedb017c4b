import { lookup as lookUpBySystem, Resolver } from 'node:dns/promises';
import { networkInterfaces } from 'node:os';
import { isPlain, Kept, NAME_FILES, readHosts, searched, type NameFiles } from './name-files.js';

/** All addresses of a name, as this machine says (hosts file and all); `zone` is whose places it takes while it waits: the rule that let it be looked up. */
export type Resolve = (name: string, zone: string) => Promise<string[]>;

export interface LookupOptions {
  /** How long one name may take. */
  withinMs: number;
  files?: NameFiles;
  /** Name servers in place of this machine's. */
  servers?: readonly string[];
  /** The C library's way, replaced where a test counts. */
  bySystem?: (name: string) => Promise<string[]>;
}

/** Names that are being looked up at once, and those of them that one rule has let be: whoever serves a zone can leave all of its own unanswered. */
const MOST = 256;
const MOST_OF_ZONE = 32;
/**
 * The same by the C library, whose call holds a thread for as long as a name server likes: Node has four of them, for files too, and gives two to such calls.
 */
const MOST_BY_SYSTEM = 2;
const MOST_BY_SYSTEM_OF_ZONE = 1;
/** One try at one server. */
const TRY_MS = 2000;
const TRIES = 2;
/** Where a name has addresses of one family, so much longer the other one is waited for. */
const OTHER_FAMILY_MS = 500;

/** Why a name was not looked up, or not to its end. */
class LookupError extends Error {
  constructor(readonly code: 'ETIMEDOUT' | 'EBUSY') {
    super(code);
  }
}

/**
 * Looks names up without a thread that waits: the hosts file, then DNS by sockets of Node's. Where this machine has other sources (nsswitch.conf), its C
 * library is asked, in few threads. Each name has its time and each zone its places, so that a name server which never answers keeps nobody else waiting.
 */
export function lookups({ withinMs, files = NAME_FILES, servers, bySystem = systemOf }: LookupOptions): Resolve {
  const [hosts, resolver, services] = [new Kept(files.hosts), new Kept(files.resolver), new Kept(files.services)];
  let known = { text: '', hosts: new Map<string, string[]>() };
  const [asked, held] = [new Places(MOST, MOST_OF_ZONE), new Places(MOST_BY_SYSTEM, MOST_BY_SYSTEM_OF_ZONE)];
  return async (name, zone) => {
    const said = resolver.text ?? '';
    if (!isPlain(name, services.text, said)) return held.take(zone, withinMs, () => bySystem(name));
    const text = hosts.text ?? '';
    if (text !== known.text) known = { text, hosts: readHosts(text) };
    const there = known.hosts.get(name.toLowerCase());
    if (there !== undefined) return there;
    return asked.take(zone, withinMs, (over) => byDns(searched(name, said), over, servers));
  };
}

/** A resolver for each name: one can be ended, and asks from a port of its own. */
async function byDns(names: readonly string[], over: AbortSignal, servers?: readonly string[]): Promise<string[]> {
  const resolver = new Resolver({ timeout: TRY_MS, tries: TRIES });
  if (servers !== undefined) resolver.setServers(servers);
  over.addEventListener('abort', () => resolver.cancel());
  let why: NodeJS.ErrnoException | undefined;
  for (const name of names) {
    const { addresses, failures } = await bothFamilies(resolver, name);
    if (addresses.length > 0) return addresses;
    const unsaid = failures.find(({ code }) => code !== 'ENOTFOUND' && code !== 'ENODATA');
    why ??= failures[0];
    // What a server could not say (SERVFAIL, no answer) is no word about the name: another one is not looked up in its place.
    if (unsaid !== undefined) throw unsaid;
  }
  throw why ?? new LookupError('ETIMEDOUT');
}

interface Answered {
  addresses: string[];
  failures: NodeJS.ErrnoException[];
}

async function bothFamilies(resolver: Resolver, name: string): Promise<Answered> {
  const found: [string[], string[]] = [[], []];
  const failures: NodeJS.ErrnoException[] = [];
  let limit: NodeJS.Timeout | undefined;
  const ask = async (family: 0 | 1, answer: Promise<string[]>): Promise<void> => {
    try {
      found[family] = await answer;
      limit ??= setTimeout(() => resolver.cancel(), OTHER_FAMILY_MS);
    } catch (error) {
      failures.push(error as NodeJS.ErrnoException);
    }
  };
  await Promise.all([ask(0, resolver.resolve4(name)), ask(1, resolver.resolve6(name))]);
  clearTimeout(limit);
  return { addresses: (hasIpv6() ? found.toReversed() : found).flat(), failures };
}

/** Whether this machine has an address by which IPv6 is reached; else that family is tried last, as the C library orders them (RFC 6724). */
function hasIpv6(): boolean {
  return Object.values(networkInterfaces()).some((list) =>
    list?.some(({ family, internal, address }) => family === 'IPv6' && !internal && !/^fe[89ab]/i.test(address)),
  );
}

async function systemOf(name: string): Promise<string[]> {
  return (await lookUpBySystem(name, { all: true, verbatim: true })).map(({ address }) => address);
}

/** So many may do something at once, and so many of them for one zone; the others wait for their turn, and all of them a time at most. */
class Places {
  readonly #of = new Map<string, number>();
  readonly #waiting: { zone: string; start: () => void }[] = [];
  #taken = 0;

  constructor(
    private readonly most: number,
    private readonly mostOfZone: number,
  ) {}

  /** A place is held until the work has ended, also where nobody waits for it any more. */
  take<T>(zone: string, withinMs: number, work: (over: AbortSignal) => Promise<T>): Promise<T> {
    const over = new AbortController();
    return new Promise((resolve, reject) => {
      const start = (): void => {
        this.#add(zone, 1);
        void work(over.signal)
          .then(resolve, reject)
          .finally(() => {
            clearTimeout(limit);
            this.#add(zone, -1);
            this.#next();
          });
      };
      const waits = { zone, start };
      const limit = setTimeout(() => {
        const at = this.#waiting.indexOf(waits);
        if (at >= 0) this.#waiting.splice(at, 1);
        reject(new LookupError(at >= 0 ? 'EBUSY' : 'ETIMEDOUT'));
        over.abort();
      }, withinMs);
      if (this.#hasRoom(zone)) start();
      else this.#waiting.push(waits);
    });
  }

  #hasRoom(zone: string): boolean {
    return this.#taken < this.most && (this.#of.get(zone) ?? 0) < this.mostOfZone;
  }

  #add(zone: string, one: 1 | -1): void {
    this.#taken += one;
    const left = (this.#of.get(zone) ?? 0) + one;
    if (left === 0) this.#of.delete(zone);
    else this.#of.set(zone, left);
  }

  #next(): void {
    const at = this.#waiting.findIndex(({ zone }) => this.#hasRoom(zone));
    if (at >= 0) this.#waiting.splice(at, 1)[0]?.start();
  }
}
