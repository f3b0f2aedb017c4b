import { findNative } from '@nd7/kernel';

/** The launcher, built first where it is not; or why there is none. */
export const findLauncher = (): ReturnType<typeof findNative> => findNative('nd7-launch');
