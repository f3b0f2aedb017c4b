import { existsSync } from 'node:fs';
import { findNative, nativePath } from '@nd7/kernel';

/** The launcher, built first where it is not; or why there is none. */
export const findLauncher = (): ReturnType<typeof findNative> => findNative('nd7-launch');

/** The program that moves the bytes of tunnels; undefined where it is not built: the proxy then moves them itself. */
export function findRelay(): string | undefined {
  const path = nativePath('nd7-relay');
  return existsSync(path) ? path : undefined;
}
