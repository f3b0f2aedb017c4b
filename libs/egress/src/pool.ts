/** 198.18.0.0/15 is set apart for tests of devices (RFC 2544): no host on the internet has one of its addresses. */
export const POOL = { address: '198.18.0.0', prefix: 15 } as const;
const BASE = 0xc6_12_00_00;
/** The first address stands for a network in the eyes of some. */
const FIRST = 1;

/** How long a program may keep an address, in seconds. */
export const TTL = 60;
/** How long it is kept for the name after it was last told: programs keep addresses longer than they were told to. */
const HELD_MS = 3_600_000;

interface Place {
  address: string;
  /** When it was told last. */
  told: number;
  /** Connections under way; of a fixed name one for good. */
  holds: number;
}

export interface PoolOptions {
  /** Most names at once (65,536). */
  most?: number;
  now?: () => number;
}

/**
 * Addresses that stand for names inside one session. A name keeps its address; where there are too many names, the address of the one that
 * was asked for longest ago goes to another, but never within an hour of its last answer nor while it is connected to: what a program still
 * has in its cache does not become another host.
 */
export class AddressPool {
  /** By name, the one that was asked for longest ago first. */
  readonly #places = new Map<string, Place>();
  readonly #names = new Map<string, string>();
  readonly #most: number;
  readonly #now: () => number;

  constructor({ most = 65_536, now = () => performance.now() }: PoolOptions = {}) {
    this.#most = most;
    this.#now = now;
  }

  /** The address of a name, from now on kept for it; undefined where none is free. */
  addressOf(name: string): string | undefined {
    const place = this.#places.get(name) ?? this.#free();
    if (place === undefined) return undefined;
    place.told = this.#now();
    this.#places.delete(name);
    this.#places.set(name, place);
    this.#names.set(place.address, name);
    return place.address;
  }

  /** The address of a name, kept for it as long as the session lasts. */
  fixed(name: string): string | undefined {
    const address = this.addressOf(name);
    this.hold(name);
    return address;
  }

  nameOf(address: string): string | undefined {
    return this.#names.get(address);
  }

  /** Keeps a name's address until the function that it returns is called. */
  hold(name: string): () => void {
    const place = this.#places.get(name);
    if (place === undefined) return () => undefined;
    place.holds++;
    return () => {
      place.holds--;
      place.told = this.#now();
    };
  }

  #free(): Place | undefined {
    const told = this.#now();
    if (this.#places.size < this.#most) return { address: addressAt(FIRST + this.#places.size), told, holds: 0 };
    for (const [name, place] of this.#places) {
      if (place.told + HELD_MS > told) return undefined; // Nor were the ones behind it told earlier.
      if (place.holds > 0) continue;
      this.#places.delete(name);
      return { address: place.address, told, holds: 0 };
    }
    return undefined;
  }
}

function addressAt(index: number): string {
  const value = BASE + index;
  return [24, 16, 8, 0].map((bits) => (value >>> bits) & 255).join('.');
}
