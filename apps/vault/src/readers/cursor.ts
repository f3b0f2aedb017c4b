// Where a page of a list ended: the time it is ordered by, and the names that part rows of one time. Opaque to whoever sends it back.
import { Problem } from '../http/problem.js';

/** The year 10000, in milliseconds. */
const END = 253_402_300_800_000;

export interface Cursor {
  at: Date;
  names: readonly string[];
}

export function writeCursor(at: Date, names: readonly string[]): string {
  return Buffer.from(JSON.stringify([at.getTime(), ...names])).toString('base64url');
}

/** Throws a Problem `bad-request` for anything but a cursor with so many names. */
export function readCursor(text: string, names: number): Cursor {
  try {
    const [at, ...rest] = JSON.parse(Buffer.from(text, 'base64url').toString('utf8')) as unknown[];
    const isTime = Number.isSafeInteger(at) && (at as number) >= 0 && (at as number) < END;
    if (isTime && rest.length === names && rest.every((name) => typeof name === 'string' && !name.includes('\0')))
      return { at: new Date(at as number), names: rest as string[] };
  } catch {
    // falls through: it is none of ours
  }
  throw new Problem('bad-request', 'cursor: take it from next_cursor of the page before');
}
