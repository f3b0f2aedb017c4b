// Where it lies what sessions that compare protected names have kept for that (confine/left-names.ts), and what a person is still to be told of it.
import { readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { blake3Hex } from '@nd7/blake3';

const NEWS = /^n-[0-9a-f]{16}\.json$/;

/** What differs after a session that was killed, as lines for a person. */
export interface News {
  session: string;
  lines: string[];
}

/** `l`: what a session that lives has before it; `n`: news of one that was killed. */
export const pathOf = (home: string, kind: 'l' | 'n', session: string): string =>
  join(home, 'run', `${kind}-${blake3Hex(Buffer.from(session)).slice(0, 16)}.json`);

/** Whether a session has left something to compare. */
export function hasKeptNames(home: string, session: string): boolean {
  return statSync(pathOf(home, 'l', session), { throwIfNoEntry: false }) !== undefined;
}

/** What nobody has been told yet of sessions that were killed. */
export function newsOf(home: string): News[] {
  return newsIn(home).flatMap((name) => {
    try {
      return [JSON.parse(readFileSync(join(home, 'run', name), 'utf8')) as News];
    } catch {
      return [];
    }
  });
}

/** It has been told. */
export function forgetNews(home: string, { session }: News): void {
  rmSync(pathOf(home, 'n', session), { force: true });
}

function newsIn(home: string): string[] {
  try {
    return readdirSync(join(home, 'run')).filter((name) => NEWS.test(name));
  } catch {
    return [];
  }
}
