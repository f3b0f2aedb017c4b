// What a signer signed last, on disk. The order of the calls is the promise: the new content is whole and synced before it gets the name,
// and the name is synced before the function returns. A crash leaves the old state or the new one.
import { link, mkdir, open, readFile, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { formatCheckpoint, parseCheckpoint, type Checkpoint } from '@nd7/tlog';
import { SignerError } from './signer.js';

const HEADER = 'nd7/signer-state/v1\n';
const NAME = 'state';

/** The folder of one log in the signer's folder: the origin with `_` for its `/` (no origin holds a `_`). */
export function originFolder(root: string, origin: string): string {
  return join(root, origin.replace('/', '_'));
}

/** Undefined when there is none. Throws SignerError `state-file` for one that does not parse or is another log's. */
export async function readState(folder: string, origin: string): Promise<Checkpoint | undefined> {
  const path = join(folder, NAME);
  let text: string;
  try {
    text = await readFile(path, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw new SignerError('state-file', `cannot read ${path}: ${(error as Error).message}`, { cause: error });
  }
  const state = text.startsWith(HEADER) ? parseCheckpoint(text.slice(HEADER.length)) : undefined;
  if (state === undefined || state.exactSize !== undefined || state.origin !== origin)
    throw new SignerError(
      'state-file',
      `${path} is damaged: put it back from a copy, or decide with \`nd7-vault signer adopt\``,
    );
  return state;
}

/** Replaces the state; durable when it returns. */
export async function writeState(folder: string, state: Checkpoint): Promise<void> {
  const path = await writeAside(folder, state);
  await rename(path, join(folder, NAME));
  await syncFolder(folder);
}

/** Makes the first state, durable when it returns. False, and nothing changed, when there is one already. */
export async function createState(folder: string, state: Checkpoint): Promise<boolean> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const path = await writeAside(folder, state);
  try {
    await link(path, join(folder, NAME)); // unlike rename it never replaces
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
    throw error;
  } finally {
    await rm(path, { force: true });
  }
  await syncFolder(folder);
  await syncFolder(join(folder, '..'));
  return true;
}

let made = 0;

async function writeAside(folder: string, state: Checkpoint): Promise<string> {
  const path = join(folder, `.state-${String(process.pid)}-${String((made += 1))}`);
  const file = await open(path, 'wx', 0o600).catch(async (error: unknown) => {
    // Left by a process of the same number that died here: never linked to a name, so nothing is lost with it.
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    await rm(path);
    return open(path, 'wx', 0o600);
  });
  try {
    await file.writeFile(HEADER + formatCheckpoint(state));
    await file.sync();
  } finally {
    await file.close();
  }
  return path;
}

/** Makes names in a folder durable. */
export async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
