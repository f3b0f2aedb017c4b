// `nd7` on PATH: a native program in nd7's home, and a link to it in a folder that the person's shell looks into.
import { accessSync, constants, existsSync, lstatSync, mkdirSync, readlinkSync, rmSync, symlinkSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { isNativePossible } from '@nd7/kernel';
import { installNative } from './install-native.js';

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
  if (user === undefined || !user.startsWith('/') || !isNativePossible('nd7')) return undefined;
  const own = [join(user, '.local/bin'), join(user, 'bin')];
  const folders = (env['PATH'] ?? '').split(':').map((folder) => folder.replace(/(?<=.)\/+$/, ''));
  const folder = own.find((one) => folders.includes(one)) ?? (own[0] as string);
  const path = join(folder, 'nd7');
  const target = targetOf(path);
  const state =
    target === frontPath(home) ? 'there' : target !== undefined ? 'foreign' : isWritable(folder) ? 'make' : 'closed';
  return { path, state, isOnPath: folders.includes(folder) };
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
  const installed = await installNative('nd7', frontPath(home), 0o700);
  if ('problem' in installed) return installed;
  if (link.state === 'make') {
    mkdirSync(dirname(link.path), { recursive: true });
    // It fails where somebody has taken the name meanwhile.
    symlinkSync(installed.path, link.path);
  }
  return installed;
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
