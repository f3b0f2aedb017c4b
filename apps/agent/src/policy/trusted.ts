// Which projects' policies a person has accepted: one version of one file, by its hash.
import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { makeFolders } from '@nd7/kernel';
import { CliError } from '../cli/io.js';

export interface TrustedPolicy {
  /** Absolute path of the project. */
  project: string;
  /** BLAKE3 of the policy file's bytes, 64 hex digits. */
  hash: string;
}

/** Whether this person has accepted this version of this project's policy. Another version is another question. */
export function isTrusted(nd7Home: string, project: string, hash: string): boolean {
  return readTrusted(nd7Home).some((known) => known.project === project && known.hash === hash);
}

/** Accepts one version of a project's policy in place of any before. */
export function trust(nd7Home: string, policy: TrustedPolicy): void {
  writeTrusted(nd7Home, [...readTrusted(nd7Home).filter(({ project }) => project !== policy.project), policy]);
}

/** Takes that back: from the next start on the project's policy only narrows. The hash that was trusted; null for none. */
export function distrust(nd7Home: string, project: string): string | null {
  const all = readTrusted(nd7Home);
  const known = all.find((policy) => policy.project === project);
  if (known === undefined) return null;
  writeTrusted(
    nd7Home,
    all.filter((policy) => policy !== known),
  );
  return known.hash;
}

const fileOf = (nd7Home: string): string => join(nd7Home, 'trusted-policies.json');

function readTrusted(nd7Home: string): TrustedPolicy[] {
  let text: string;
  try {
    text = readFileSync(fileOf(nd7Home), 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw damaged(nd7Home, (error as NodeJS.ErrnoException).code ?? 'error');
  }
  try {
    const { trusted } = JSON.parse(text) as { trusted: unknown };
    if (Array.isArray(trusted) && trusted.every(isTrustedPolicy)) return trusted;
  } catch {
    // Told below, as everything else that is not what was written here.
  }
  throw damaged(nd7Home, 'it is not what nd7 wrote');
}

function isTrustedPolicy(value: unknown): value is TrustedPolicy {
  const { project, hash } = (value ?? {}) as Partial<TrustedPolicy>;
  return typeof project === 'string' && typeof hash === 'string' && /^[0-9a-f]{64}$/.test(hash);
}

function damaged(nd7Home: string, why: string): CliError {
  return new CliError(
    1,
    `${fileOf(nd7Home)} cannot be read (${why})`,
    'Take it away, and trust your projects’ policies again.',
  );
}

function writeTrusted(nd7Home: string, trusted: TrustedPolicy[]): void {
  makeFolders(nd7Home, 0o700);
  const file = fileOf(nd7Home);
  const temporary = `${file}.${process.pid}.tmp`;
  writeFileSync(temporary, `${JSON.stringify({ trusted }, null, 2)}\n`, { mode: 0o600 });
  renameSync(temporary, file);
}
