import { closeSync, lstatSync, openSync, readSync } from 'node:fs';

const CHUNK = 1024 * 1024;
/** So much is read of one transcript per look; what is left is read at the next, at the session's end at once. */
const PER_LOOK = 4 * CHUNK;
const AT_THE_END = 64 * CHUNK;
/** A line may be so long; what a longer one calls is not seen. */
const MAX_LINE = 4 * CHUNK;

/**
 * Follows one transcript of a client as it grows and finds the tool calls in it. It is the client's own file and may be missing, moved or false: finding nothing
 * proves nothing.
 */
export class Transcript {
  private offset: number | undefined;
  private inode = 0;
  private rest = '';
  /** Lines from before this, ms, say nothing new; only asked of a file that was put in another's place. */
  private after = 0;

  /** `fromStart`: all of it is new; else what stands in it at the first look is old. */
  constructor(
    private readonly path: string,
    private readonly began: number,
    fromStart = false,
  ) {
    if (fromStart) this.offset = 0;
  }

  /** Ids of the tool calls in the lines that came since the last look; undefined where there is no file that a client could be writing. */
  grown(isLast = false): string[] | undefined {
    const stat = lstatSync(this.path, { throwIfNoEntry: false });
    if (stat === undefined || stat.size === 0) this.offset ??= 0; // not made yet: all of it will be new
    if (stat?.isFile() !== true || stat.size === 0) return undefined;
    const isOther =
      this.offset !== undefined && (stat.size < this.offset || (this.offset > 0 && stat.ino !== this.inode));
    if (isOther) [this.offset, this.rest, this.after] = [0, '', this.began];
    this.inode = stat.ino;
    this.offset ??= stat.size;
    return stat.size === this.offset
      ? []
      : this.read(Math.min(stat.size, this.offset + (isLast ? AT_THE_END : PER_LOOK)));
  }

  private read(to: number): string[] {
    const ids: string[] = [];
    let fd: number | undefined;
    try {
      fd = openSync(this.path, 'r');
      for (let at = this.offset ?? 0; at < to; at = this.offset) {
        const bytes = Buffer.alloc(Math.min(to - at, CHUNK));
        const read = readSync(fd, bytes, 0, bytes.length, at);
        if (read === 0) break;
        this.offset = at + read;
        const lines = (this.rest + bytes.toString('latin1', 0, read)).split('\n');
        this.rest = (lines.pop() ?? '').slice(-MAX_LINE);
        for (const line of lines) ids.push(...callsIn(line, this.after));
      }
    } catch {
      // Gone, or not ours to read: the next look says.
    } finally {
      if (fd !== undefined) closeSync(fd);
    }
    return ids;
  }
}

/** Ids of the calls an assistant line makes. Bytes are read as Latin-1: ids are ASCII, and nothing else is used. */
function callsIn(line: string, after: number): string[] {
  if (!line.includes('"tool_use"')) return [];
  try {
    const { message, timestamp } = JSON.parse(line) as { message?: { content?: unknown }; timestamp?: unknown };
    if (!Array.isArray(message?.content)) return [];
    if (typeof timestamp === 'string' && Date.parse(timestamp) < after) return [];
    return message.content.flatMap((block: unknown) => {
      const { type, id } = (block ?? {}) as { type?: unknown; id?: unknown };
      return type === 'tool_use' && typeof id === 'string' ? [id] : [];
    });
  } catch {
    return [];
  }
}
