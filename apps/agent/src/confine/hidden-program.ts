import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { isWithin, type Ruleset } from '@nd7/policy';
import { safeLine } from '../show/safe.js';

/** Why a program that could not be executed inside was not found there though it is outside; undefined where that is not the reason. */
export function hiddenProgram(program: string, cwd: string, { privateTmp, tmp }: Ruleset): string | undefined {
  const path = resolve(cwd, program);
  if (!program.includes('/') || !existsSync(path)) return undefined;
  const own = privateTmp ? [tmp, '/tmp', '/var/tmp'].find((folder) => isWithin(path, folder)) : undefined;
  return own === undefined
    ? `${safeLine(path)} is there, and closed inside: nd7 why ${safeLine(path)}`
    : `${safeLine(path)} is there, but the session has ${own} to itself: put the program elsewhere, or allow its folder in your policy (files.read.allow and files.exec.allow)`;
}
