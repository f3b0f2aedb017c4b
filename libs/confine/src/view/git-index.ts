import { createHash } from 'node:crypto';
import { statSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { readWhole } from './read-whole.js';

/** Above this a file is not hashed to see whether git holds it: it stays masked. */
const MAX_HASHED = 1 << 20;
const MAX_INDEX = 256 << 20;
const MAX_POINTER = 64 << 10;
const HASH = 20;

/**
 * Path → object id of a git index (gitformat-index(5), versions 2 to 4, SHA-1). Throws for anything else: who asks then treats nothing as
 * tracked.
 */
export function parseIndex(bytes: Buffer): Map<string, string> {
  const version = bytes.readUInt32BE(4);
  if (bytes.toString('latin1', 0, 4) !== 'DIRC' || version < 2 || version > 4)
    throw new Error('no git index of versions 2 to 4');
  const found = new Map<string, string>();
  let at = 12;
  let path = '';
  for (let left = bytes.readUInt32BE(8); left > 0; left--) {
    const start = at;
    const id = bytes.toString('hex', start + 40, start + 40 + HASH);
    const isExtended = (bytes.readUInt16BE(start + 40 + HASH) & 0x4000) !== 0;
    at = start + 42 + HASH + (isExtended ? 2 : 0);
    if (version === 4) {
      const [strip, next] = varint(bytes, at);
      at = next;
      path = path.slice(0, path.length - strip);
    } else path = '';
    const end = bytes.indexOf(0, at);
    if (end < 0) throw new Error('a name of the git index has no end');
    path += bytes.toString('latin1', at, end);
    at = version === 4 ? end + 1 : start + (((end - start + 8) >> 3) << 3);
    found.set(Buffer.from(path, 'latin1').toString(), id);
  }
  return found;
}

/** The number of git's pack format in which each byte but the last adds one. */
function varint(bytes: Buffer, at: number): [number, number] {
  let byte = bytes.readUInt8(at++);
  let value = byte & 0x7f;
  while ((byte & 0x80) !== 0) {
    byte = bytes.readUInt8(at++);
    value = (value + 1) * 128 + (byte & 0x7f);
  }
  return [value, at];
}

/** The folder that holds the index of the repository whose work tree is `folder`; undefined where it is none. */
function gitDirOf(folder: string): string | undefined {
  const dotGit = join(folder, '.git');
  const stat = statSync(dotGit, { throwIfNoEntry: false });
  if (stat === undefined) return undefined;
  if (stat.isDirectory()) return dotGit;
  const pointer = readWhole(dotGit, MAX_POINTER);
  if (pointer === undefined) throw new Error(`${dotGit} cannot be read`);
  const target = /^gitdir: (.+)$/m.exec(pointer.toString())?.[1];
  return target === undefined
    ? undefined
    : join(folder, relative(folder, join(target.startsWith('/') ? '/' : folder, target)));
}

/**
 * Says of files whether git holds what they hold. The index alone is not believed: an agent could have put a name into it in an earlier
 * session without ever reading the file. A file whose content is the blob that the index names is in the object store anyway.
 */
export class GitFiles {
  readonly #indexes = new Map<string, Map<string, string> | undefined>();

  isHeld(path: string): boolean {
    try {
      for (let folder = dirname(path); folder !== '/'; folder = dirname(folder)) {
        const index = this.#indexOf(folder);
        if (index === undefined) continue;
        const id = index.get(relative(folder, path));
        return id !== undefined && id === blobId(path);
      }
    } catch {
      // What cannot be read or parsed is not known to be held: the file stays masked.
    }
    return false;
  }

  #indexOf(folder: string): Map<string, string> | undefined {
    if (!this.#indexes.has(folder)) this.#indexes.set(folder, readIndex(folder));
    return this.#indexes.get(folder);
  }
}

function readIndex(folder: string): Map<string, string> | undefined {
  const gitDir = gitDirOf(folder);
  if (gitDir === undefined) return undefined;
  const bytes = readWhole(join(gitDir, 'index'), MAX_INDEX);
  return bytes === undefined ? new Map<string, string>() : parseIndex(bytes);
}

function blobId(path: string): string | undefined {
  const content = readWhole(path, MAX_HASHED);
  return content && createHash('sha1').update(`blob ${content.length}\0`).update(content).digest('hex');
}
