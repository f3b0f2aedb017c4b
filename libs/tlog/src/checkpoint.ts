import { fromBase64, toBase64 } from '@nd7/entry';

/** A number of leaves, or the place of one: a bigint above 2^53 - 1, where a number would lie. */
export type Count = number | bigint;

/** A tree head (C2SP tlog-checkpoint, exactly three lines). */
export interface Checkpoint {
  /** The log's name, `<vault name>/<team>`. */
  origin: string;
  /** How many leaves the tree has. Above 2^53 - 1 the nearest double: see `exactSize`. */
  size: number;
  /** 32 bytes. */
  root: Uint8Array;
  /** There only where `size` cannot be exact. */
  exactSize?: bigint;
}

const CHECKPOINT = /^([^\n]+)\n(0|[1-9][0-9]{0,15})\n([A-Za-z0-9+/]{43}=)\n$/;

/** Whether `text` has the form of an origin: `[a-z0-9.-]+/[a-z0-9-]+`, at most 128 bytes. */
export function isOrigin(text: string): boolean {
  return text.length <= 128 && /^[a-z0-9.-]+\/[a-z0-9-]+$/.test(text);
}

/** Reads the text of a checkpoint's note; undefined where it is not exactly origin, size and root. */
export function parseCheckpoint(noteText: string): Checkpoint | undefined {
  const [, origin, sizeText, encoded] = CHECKPOINT.exec(noteText) ?? [];
  const root = encoded === undefined ? undefined : fromBase64(encoded);
  if (origin === undefined || sizeText === undefined || root === undefined || !isOrigin(origin)) return undefined;
  const size = Number(sizeText);
  return Number.isSafeInteger(size) ? { origin, size, root } : { origin, size, root, exactSize: BigInt(sizeText) };
}

/** The three lines. Throws a RangeError for a checkpoint that `parseCheckpoint` would not give. */
export function formatCheckpoint(checkpoint: Checkpoint): string {
  const text = `${checkpoint.origin}\n${String(sizeOf(checkpoint))}\n${toBase64(checkpoint.root)}\n`;
  if (parseCheckpoint(text) === undefined) throw new RangeError(`not a checkpoint: ${JSON.stringify(text)}`);
  return text;
}

/** The size, exact whatever it is. */
export function sizeOf(checkpoint: Checkpoint): Count {
  return checkpoint.exactSize ?? checkpoint.size;
}
