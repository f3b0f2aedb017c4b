import { constants } from 'node:os';

/** What the kernel refused. `errno` is the symbolic name (`EBADF`, …) where Node knows it. */
export class KernelError extends Error {
  readonly code:
    'lock-failed' | 'no-peer' | 'not-received' | 'not-duplicated' | 'unsupported' | 'no-seatbelt' | 'not-run';
  readonly errno: string | undefined;

  constructor(code: KernelError['code'], message: string, errno?: string) {
    super(message);
    this.name = 'KernelError';
    this.code = code;
    this.errno = errno;
  }
}

/** The symbolic name of an errno number, `errno <n>` where this platform's table has none. */
export function errnoName(errno: number): string {
  for (const [name, value] of Object.entries(constants.errno)) if (value === errno) return name;
  return `errno ${errno}`;
}
