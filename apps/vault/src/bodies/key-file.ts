// Symmetric keys in files: 32 bytes as 64 hex digits, one line, 0600, never written over.
import {
  closeSync,
  constants,
  fstatSync,
  fsyncSync,
  linkSync,
  mkdirSync,
  openSync,
  readdirSync,
  readSync,
  unlinkSync,
  writeSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import type { Random } from '../ports.js';

export class KeyFileError extends Error {
  constructor(
    readonly code: 'missing' | 'permissions' | 'format',
    message: string,
  ) {
    super(message);
    this.name = 'KeyFileError';
  }
}

/** Folder of a team's sealing keys: `<keys>/sealing/<team>/<number>.key`; the highest number seals new sessions. */
function folderOf(keys: string, team: string): string {
  return join(keys, 'sealing', team);
}

/** The team's sealing keys by name, oldest first. */
export function sealingKeys(keys: string, team: string): string[] {
  try {
    return readdirSync(folderOf(keys, team))
      .filter((name) => /^\d{4}\.key$/.test(name))
      .sort()
      .map((name) => name.slice(0, 4));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw error;
  }
}

/**
 * Makes the team's next sealing key; the older ones stay, for what they sealed. Returns its name. Whole and on the disk before anybody can see
 * it; where two make one at the same time, both get one.
 */
export function createSealingKey(keys: string, team: string, random: Random): string {
  const folder = folderOf(keys, team);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const draft = join(folder, `new-${Buffer.from(random(8)).toString('hex')}`);
  const fd = openSync(draft, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW, 0o600);
  try {
    writeSync(fd, `${Buffer.from(random(32)).toString('hex')}\n`);
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
  try {
    for (let number = Number(sealingKeys(keys, team).at(-1) ?? '0') + 1; ; number += 1) {
      const name = String(number).padStart(4, '0');
      if (!linked(draft, join(folder, `${name}.key`))) continue; // somebody was first
      for (const above of [folder, dirname(folder), keys]) syncFolder(above);
      return name;
    }
  } finally {
    unlinkSync(draft);
  }
}

/** Gives a file its name unless the name is taken: a link never replaces. */
function linked(from: string, to: string): boolean {
  try {
    linkSync(from, to);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
    throw error;
  }
}

/** Reads one; refuses a file that somebody else could have read. */
export function loadSealingKey(keys: string, team: string, name: string): Buffer {
  const path = join(folderOf(keys, team), `${name}.key`);
  let fd: number;
  try {
    fd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  } catch {
    throw new KeyFileError(
      'missing',
      `the sealing key ${path} is not there: bodies of team ${team} cannot be opened without it; restore it from its backup`,
    );
  }
  try {
    const { mode, uid } = fstatSync(fd);
    const self = process.geteuid?.();
    if (self !== undefined && uid !== self)
      throw new KeyFileError(
        'permissions',
        `the sealing key ${path} belongs to user ${String(uid)}: chown ${String(self)} ${path}`,
      );
    if ((mode & 0o077) !== 0)
      throw new KeyFileError('permissions', `others have rights to the sealing key ${path}: chmod 600 ${path}`);
    const text = Buffer.alloc(128);
    const length = readSync(fd, text, 0, text.length, 0);
    const hex = text.subarray(0, length).toString('latin1').trimEnd();
    if (!/^[0-9a-f]{64}$/.test(hex))
      throw new KeyFileError('format', `${path} is not a sealing key: it must hold 64 hex digits`);
    return Buffer.from(hex, 'hex');
  } finally {
    closeSync(fd);
  }
}

function syncFolder(path: string): void {
  const fd = openSync(path, constants.O_RDONLY);
  try {
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}
