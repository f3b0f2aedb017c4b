// `nd7` on PATH: a native program in nd7's home, and a link to it in a folder that the person's shell looks into.
import {
  accessSync,
  chmodSync,
  constants,
  copyFileSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  symlinkSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const NATIVE = fileURLToPath(new URL('../../../../native/front/', import.meta.url));
const BUILT = join(NATIVE, 'build', 'nd7');

/** Where the front of a home lies. */
export function frontPath(home: string): string {
  return join(home, 'bin', 'nd7');
}

/** What is to become of `nd7` on PATH. */
export interface FrontLink {
  /** The link, as it stands or is to be made. */
  path: string;
  /** `make`: there is nothing yet. `there`: it is ours already. `foreign`: somebody else's file has that name. `closed`: the folder cannot be written to. */
  state: 'make' | 'there' | 'foreign' | 'closed';
  /** Whether the person's shell looks there. */
  isOnPath: boolean;
}

/**
 * The folder of the person's own programs: the one that is on PATH, `~/.local/bin` before `~/bin`; where neither is, `~/.local/bin`, which shells of many
 * systems look into as soon as it is there. Undefined where there can be no front: no C compiler, another system, no HOME.
 */
export function planFrontLink(home: string, env: NodeJS.ProcessEnv): FrontLink | undefined {
  const user = env['HOME'];
  if (user === undefined || !user.startsWith('/') || !frontPossible()) return undefined;
  const own = [join(user, '.local/bin'), join(user, 'bin')];
  const folders = (env['PATH'] ?? '').split(':').map((folder) => folder.replace(/(?<=.)\/+$/, ''));
  const folder = own.find((one) => folders.includes(one)) ?? (own[0] as string);
  const path = join(folder, 'nd7');
  const target = targetOf(path);
  const state =
    target === frontPath(home) ? 'there' : target !== undefined ? 'foreign' : isWritable(folder) ? 'make' : 'closed';
  return { path, state, isOnPath: folders.includes(folder) };
}

/** Whether a front can be had here, without building it. */
function frontPossible(): boolean {
  return existsSync(BUILT) || (process.platform === 'linux' && existsSync(join(NATIVE, 'build.mjs')));
}

/** Where a link leads; the path itself where something else has the name; undefined where nothing has. */
function targetOf(path: string): string | undefined {
  const found = lstatSync(path, { throwIfNoEntry: false });
  return found === undefined ? undefined : found.isSymbolicLink() ? readlinkSync(path) : path;
}

/** Whether a folder can be written to, or made. */
function isWritable(folder: string): boolean {
  if (!existsSync(folder)) return dirname(folder) !== folder && isWritable(dirname(folder));
  try {
    accessSync(folder, constants.W_OK);
    return true;
  } catch {
    return false;
  }
}

/** Puts the front into the home, and the link where `planFrontLink` says. Answers with the reason where there is none. */
export async function installFront(home: string, link: FrontLink): Promise<{ path: string } | { problem: string }> {
  const problem = await build();
  if (problem !== undefined) return { problem };
  const path = frontPath(home);
  if (!existsSync(path) || !readFileSync(path).equals(readFileSync(BUILT))) {
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
    const temporary = `${path}.${process.pid}`;
    try {
      copyFileSync(BUILT, temporary);
      chmodSync(temporary, 0o755);
      renameSync(temporary, path);
    } finally {
      rmSync(temporary, { force: true });
    }
  }
  if (link.state === 'make') {
    mkdirSync(dirname(link.path), { recursive: true });
    // It fails where somebody has taken the name meanwhile.
    symlinkSync(path, link.path);
  }
  return { path };
}

/** Takes the link of a home's front away where it is ours; answers with its path. The front itself stays, as the shim does. */
export function removeFrontLink(home: string, env: NodeJS.ProcessEnv, dryRun: boolean): string | undefined {
  const user = env['HOME'];
  if (user === undefined || !user.startsWith('/')) return undefined;
  const found = ['.local/bin', 'bin']
    .map((folder) => join(user, folder, 'nd7'))
    .find((path) => targetOf(path) === frontPath(home));
  if (found !== undefined && !dryRun) rmSync(found);
  return found;
}

async function build(): Promise<string | undefined> {
  if (existsSync(BUILT)) return undefined;
  const { buildFront } = (await import(join(NATIVE, 'build.mjs'))) as {
    buildFront(): { front?: string; skipped?: string };
  };
  try {
    const { front, skipped } = buildFront();
    return front === undefined ? (skipped ?? 'the front could not be built') : undefined;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}
