import type { SeenTree } from '../worker/protocol.js';

/** The last tree of an origin that this browser accepted, with the signed note: two that disagree convict the vault. */
export interface Seen extends SeenTree {
  note: string;
  /** When, milliseconds since the epoch. */
  at: number;
}

const key = (origin: string) => `nd7-seen:${origin}`;

export function readSeen(origin: string): Seen | undefined {
  try {
    const value = JSON.parse(localStorage.getItem(key(origin)) ?? 'null') as Partial<Seen> | null;
    if (
      value === null ||
      !Number.isSafeInteger(value.size) ||
      typeof value.root !== 'string' ||
      !/^[0-9a-f]{64}$/.test(value.root)
    )
      return undefined;
    return { size: value.size ?? 0, root: value.root, note: String(value.note ?? ''), at: Number(value.at ?? 0) };
  } catch {
    return undefined;
  }
}

/** Keeps a tree that was accepted; one that was not must never overwrite the one it contradicts. */
export function keepSeen(origin: string, seen: Seen): void {
  try {
    localStorage.setItem(key(origin), JSON.stringify(seen));
  } catch {
    // No storage: the next visit begins without a memory.
  }
}
