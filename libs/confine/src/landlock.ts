// What Landlock a kernel brings, where that has to be known before anything is started.

/** Landlock's version from which it keeps signals inside; Linux 6.12 brought it. */
export const SIGNAL_SCOPE = 6;

/** From which it tells unix sockets apart by who has bound them; Linux 7.1 brought it. */
export const RESOLVES_UNIX = 9;

/** Whether a kernel of this release does. Older ones with newer parts are taken for old ones: what is asked of Landlock is what the launcher holds it to. */
export function keepsSignals(kernel: string): boolean {
  return landlockOf(kernel) >= SIGNAL_SCOPE;
}

/** Versions of Landlock by the Linux release that brought them. */
const BROUGHT: readonly (readonly [version: number, major: number, minor: number])[] = [
  [RESOLVES_UNIX, 7, 1],
  [SIGNAL_SCOPE, 6, 12],
  [5, 6, 10],
  [4, 6, 7],
  [3, 6, 2],
  [2, 5, 19],
  [1, 5, 13],
];

/** The Landlock that a kernel of this release has, as far as nd7 makes use of it; 0: none. The launcher does not start under an older one. */
export function landlockOf(kernel: string): number {
  const [major = 0, minor = 0] = kernel.split('.').map((part) => Number.parseInt(part, 10));
  return BROUGHT.find(([, from, since]) => major > from || (major === from && minor >= since))?.[0] ?? 0;
}
