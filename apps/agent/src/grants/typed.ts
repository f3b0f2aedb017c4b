// What a person types after `nd7 allow` and `nd7 deny`, as a session takes it.
import { existsSync, lstatSync } from 'node:fs';
import { homedir } from 'node:os';
import { join, resolve } from 'node:path';
import { PolicyError } from '@nd7/policy';
import { CliError, type Io } from '../cli/io.js';
import { safeLine } from '../show/safe.js';
import { FrameFault, readWanted } from './control-frames.js';
import { follow } from './ruling.js';
import { isRight, RIGHTS, type Wanted } from './wanted.js';

export interface Typed {
  below?: boolean;
  raw?: boolean;
}

/** `port`: which is meant where a host has none. Throws `CliError` (2) for what is no such thing. */
export function typedWanted(
  io: Io,
  right: string,
  what: string,
  { below = false, raw = false }: Typed,
  port?: string,
): Wanted {
  if (!isRight(right))
    throw new CliError(
      2,
      `"${safeLine(right)}" is nothing that is granted`,
      `There are ${RIGHTS.join(', ')}; or the id of a request: nd7 grants`,
    );
  const isPath = right === 'read' || right === 'write' || (right === 'socket' && /[/~]/.test(what));
  try {
    return readWanted({ right, what: isPath ? follow(placeOf(io, what)) : what, below, raw }, port);
  } catch (error) {
    if (error instanceof FrameFault) throw new CliError(2, error.message);
    if (error instanceof PolicyError) throw new CliError(2, safeLine(error.what), safeLine(error.mend), error.code);
    throw error;
  }
}

/**
 * The path as it was typed, where a link on it was made by somebody who may be inside: where it leads is then their word, not the person’s.
 * Undefined where there is none.
 */
export function ledAstray(io: Io, right: string, what: string): string | undefined {
  const isPath = right === 'read' || right === 'write' || (right === 'socket' && /[/~]/.test(what));
  const said = isPath ? placeOf(io, what) : '/';
  if (follow(said) === said) return undefined;
  const isOwnLink = (path: string): boolean => {
    const link = lstatSync(path, { throwIfNoEntry: false });
    return link?.isSymbolicLink() === true && (link.uid !== 0 || process.geteuid?.() === 0);
  };
  const prefixes = said.split('/').map((_, i, parts) => parts.slice(0, i + 1).join('/') || '/');
  return prefixes.some(isOwnLink) ? said : undefined;
}

function placeOf(io: Io, what: string): string {
  if (what === '~' || what.startsWith('~/')) return join(io.env['HOME'] ?? homedir(), what.slice(1));
  return resolve(io.cwd, what);
}

/** `read:PATH`, `write:PATH`, `net:HOST[:PORT]`, `socket:NAME` of `nd7 run --allow`: of a folder all that is in it. */
export function typedSpec(io: Io, spec: string): Wanted {
  const at = spec.indexOf(':');
  if (at <= 0)
    throw new CliError(
      2,
      `"${safeLine(spec)}" is nothing that --allow takes`,
      'Write read:PATH, write:PATH, net:HOST[:PORT] or socket:NAME.',
    );
  const wanted = typedWanted(io, spec.slice(0, at), spec.slice(at + 1), {});
  if (wanted.right === 'read' && !existsSync(wanted.what))
    throw new CliError(2, `${safeLine(wanted.what)} is not there`, 'Name what is there.');
  return wanted;
}
