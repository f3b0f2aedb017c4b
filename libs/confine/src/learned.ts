/** What a session that learns can be seen to do; the numbers of docs/protocol/observe.md. */
export const LEARNED = {
  1: 'read',
  2: 'list',
  3: 'look',
  4: 'write',
  5: 'make-folder',
  6: 'exec',
  7: 'socket',
  8: 'dial',
  9: 'bind',
} as const;

/** One thing that a program was seen to ask for, told once. It was looked at, not decided: the boundary in force decided. */
export interface Learned {
  what: (typeof LEARNED)[keyof typeof LEARNED];
  /** Real path; empty where it is not there. For `dial` and `bind` address and port. */
  path: string;
  /** The path as it was said, absolute. */
  said: string;
  /** Errno of finding it; 0: it is there. */
  error: number;
  /** Pid outside. */
  pid: number;
  /** Name of the program as the kernel has it (15 bytes). */
  program: string;
}
