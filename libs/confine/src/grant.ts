import { getSystemErrorMap } from 'node:util';

/** Something that a living session is given from outside. */
export interface Widening {
  /** From 1 on; each names one grant of the session, which at most 64 hold at a time. */
  id: number;
  /** `write` includes reading. `socket`: a socket with a path, to connect to. */
  what: 'read' | 'write' | 'socket';
  /** Absolute, normal, without a symbolic link on it. For `write` it need not be there if the session sees the folder above. */
  path: string;
  /** Everything below the path too; a folder is granted in no other way. */
  below: boolean;
}

/** A grant that does not hold, or one that was to end and is not known. */
export class GrantError extends Error {
  constructor(
    message: string,
    /** Number of errno; 0 where the session has ended. */
    readonly errno: number,
  ) {
    super(message);
    this.name = 'GrantError';
  }
}

/** The highest number of a grant: above it, events number rules otherwise. */
export const GRANT_ID_MAX = 0x3fff_ffff;
const WHAT = { read: 1, write: 2, socket: 4 } as const satisfies Record<Widening['what'], number>;
const BELOW = 1;
const MAX_PATH = 4095;

/** The body of the frame. Throws RangeError for a path that the supervisor takes for a wrong frame, which would end the session. */
export function encodeWidening({ what, path, below }: Widening): Uint8Array {
  const text = Buffer.from(`${path}\0`);
  const parts = path.split('/').slice(1);
  const isPlain = path.startsWith('/') && parts.every((part) => part !== '' && part !== '.' && part !== '..');
  if (
    !isPlain ||
    path.includes('\0') ||
    text.length > MAX_PATH + 1 ||
    parts.some((part) => Buffer.byteLength(part) > 255)
  )
    throw new RangeError(`no plain absolute path: ${JSON.stringify(path)}`);
  const head = Buffer.alloc(8);
  head.writeUInt32LE(WHAT[what], 0);
  head.writeUInt32LE(below ? BELOW : 0, 4);
  return Buffer.concat([head, text]);
}

/** What the supervisor means by an errno; else what the system says. */
const REASONS: Readonly<Record<string, string>> = {
  EPERM: 'no grant reaches it, since nd7’s own folder or the system’s devices and processes are there',
  EEXIST: 'a grant of this number holds already',
  ENOSPC: 'as many grants hold as a session takes (64)',
  ENOENT: 'it is not there, and the session does not see the folder that it would be in',
  ELOOP: 'there is a symbolic link on the path; grant what it leads to',
  EISDIR: 'it is a folder, which is granted with everything below it',
  ENOTDIR: 'something else stands there inside',
  ENOTSOCK: 'it is no socket',
  EINVAL: 'it is neither a file nor a folder; a socket is granted as one',
  EBUSY: 'parts of the session’s own view lie below it; grant what you mean below it',
  EOPNOTSUPP:
    'the session has no place for it: it lies on what was mounted outside since the start, or this tier takes no grants of files',
  E2BIG: 'too much lies below it to look for what has to stay hidden; grant what you mean below it',
};

export function reasonOf(error: number): string {
  const [name = '', message = `errno ${error}`] = getSystemErrorMap().get(-error) ?? [];
  return REASONS[name] ?? message;
}
