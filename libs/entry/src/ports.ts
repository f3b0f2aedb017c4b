/** Where the time comes from. A parameter of everything that asks for the time, so that tests can say what it is. */
export interface Clock {
  /** Milliseconds since the epoch, UTC. */
  now(): number;
}

/** Where randomness comes from: `bytes` fresh random bytes, fit for keys, salts and nonces. */
export type Random = (bytes: number) => Uint8Array;
