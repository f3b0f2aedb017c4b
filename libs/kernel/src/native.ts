// The programs under native/ are built with the workspace, and by whoever needs one where that has not been done.
import { existsSync } from 'node:fs';
import { fileURLToPath, pathToFileURL } from 'node:url';

export type NativeProgram = 'nd7-shim' | 'nd7' | 'nd7-launch' | 'nd7-probes' | 'nd7-relay';

/** The folder under native/ that each is built in. */
const FOLDERS: Record<NativeProgram, string> = {
  'nd7-shim': 'shim',
  nd7: 'front',
  'nd7-launch': 'launch',
  'nd7-probes': 'probes',
  'nd7-relay': 'relay',
};

function placeOf(program: NativeProgram, name: string): string {
  return fileURLToPath(new URL(`../../../native/${FOLDERS[program]}/${name}`, import.meta.url));
}

/** Where the workspace builds a program; nothing may be there. */
export function nativePath(program: NativeProgram): string {
  return placeOf(program, `build/${program}`);
}

/** Whether a program is there, or its sources are, on a system that it is for. */
export function isNativePossible(program: NativeProgram): boolean {
  return existsSync(nativePath(program)) || (process.platform === 'linux' && existsSync(placeOf(program, 'build.mjs')));
}

/** The path of a program, built first where it is not; or why there is none, with what to do. */
export async function findNative(program: NativeProgram): Promise<{ path: string } | { problem: string }> {
  const path = nativePath(program);
  if (existsSync(path)) return { path };
  const script = placeOf(program, 'build.mjs');
  if (!existsSync(script)) return { problem: `the sources of ${program} are not part of this installation` };
  const { build } = (await import(pathToFileURL(script).href)) as { build(): { path: string } | { skipped: string } };
  try {
    const result = build();
    return 'path' in result ? result : { problem: result.skipped };
  } catch (error) {
    return { problem: error instanceof Error ? error.message : String(error) };
  }
}
