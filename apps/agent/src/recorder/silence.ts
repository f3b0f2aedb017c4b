import { closeSync, openSync, readSync, statSync } from 'node:fs';

/** A transcript is read at most so far per look; what is skipped is read at the next. */
const MAX_READ = 1024 * 1024;
/** How long a call may stand in the transcript before a hook must have told of it. */
const GRACE_MS = 15_000;

/**
 * Reads what a client's own transcript grew by and finds the tool calls that no hook told of: the hooks are silent while tools go
 * on. One per session. The transcript is the client's own file and may be missing, moved or false: finding nothing proves nothing.
 */
export class SilenceWatch {
  private offset: number | undefined;
  private rest = '';
  private readonly pending = new Map<string, number>();

  /**
   * Call ids that have stood in the transcript for GRACE_MS (at the session's end: at all) without a hook; each is told once. The first look
   * notes where the transcript ends.
   */
  look(path: string | undefined, told: ReadonlySet<string>, now: number, isLast = false): string[] {
    if (path === undefined) return [];
    for (const id of this.grown(path)) if (!told.has(id) && !this.pending.has(id)) this.pending.set(id, now);
    const silent: string[] = [];
    for (const [id, since] of this.pending) {
      if (told.has(id)) this.pending.delete(id);
      else if (since !== Infinity && (isLast || now - since >= GRACE_MS)) {
        silent.push(id);
        this.pending.set(id, Infinity);
      }
    }
    return silent;
  }

  /** Ids of the tool calls in the lines that came since the last look. */
  private grown(path: string): string[] {
    let size: number;
    try {
      size = statSync(path).size;
    } catch {
      this.offset ??= 0; // not made yet: all of it will be new
      return [];
    }
    if (this.offset === undefined || size < this.offset) {
      this.offset = size;
      this.rest = '';
      return [];
    }
    if (size === this.offset) return [];
    const bytes = Buffer.alloc(Math.min(size - this.offset, MAX_READ));
    let fd: number | undefined;
    try {
      fd = openSync(path, 'r');
      const read = readSync(fd, bytes, 0, bytes.length, this.offset);
      this.offset += read;
      const lines = (this.rest + bytes.toString('latin1', 0, read)).split('\n');
      this.rest = (lines.pop() ?? '').slice(-MAX_READ);
      return lines.flatMap(callsIn);
    } catch {
      return [];
    } finally {
      if (fd !== undefined) closeSync(fd);
    }
  }
}

/** Ids of the calls an assistant line makes. Bytes are read as Latin-1: ids are ASCII, and nothing else is used. */
function callsIn(line: string): string[] {
  if (!line.includes('"tool_use"')) return [];
  try {
    const message = (JSON.parse(line) as { type?: unknown; message?: { content?: unknown } }).message;
    if (!Array.isArray(message?.content)) return [];
    return message.content.flatMap((block: unknown) => {
      const { type, id } = (block ?? {}) as { type?: unknown; id?: unknown };
      return type === 'tool_use' && typeof id === 'string' ? [id] : [];
    });
  } catch {
    return [];
  }
}
