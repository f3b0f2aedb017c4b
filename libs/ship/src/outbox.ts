import type { SignedClaim } from '@nd7/segment';
import { claimLines, parseClaim } from '@nd7/segment';
import { fromBase64 } from '@nd7/entry';
import { existsSync, readdirSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import { io, isMissing, makeFolder, readText, removeFile, replaceFile } from './disk.js';

/**
 * The cuts of one session that were begun and are not acknowledged: `$ND7_HOME/outbox/<session>/<from>`. A cut is on the disk before it is sent, so
 * that after a crash the same cut is sent again, byte for byte. It holds the signed claim; the entries stand in the log.
 */
export class Outbox {
  constructor(private readonly folder: string) {}

  /** The cut that begins at an entry; undefined where there is none, or no whole one. */
  read(from: number): SignedClaim | undefined {
    const [, lines, signature] = /^(.*\n)signature ([^\n]*)\n$/s.exec(readText(this.path(from)) ?? '') ?? [];
    const claim = lines === undefined ? undefined : parseClaim(lines);
    if (claim?.from !== from || signature === undefined || fromBase64(signature)?.length !== 64) return undefined;
    return { ...claim, signature };
  }

  /** Puts a cut on the disk; returns when it is there. */
  write(claim: SignedClaim): void {
    makeFolder(this.folder);
    replaceFile(this.path(claim.from), `${claimLines(claim)}signature ${claim.signature}\n`);
  }

  /** Forgets a cut whose receipt is held. */
  remove(from: number): void {
    removeFile(this.path(from));
  }

  /** Keeps a cut that the log no longer agrees with under another name; returns that name. */
  setAside(from: number): string {
    const aside = this.free(`${String(from)}.superseded`);
    try {
      renameSync(this.path(from), aside);
    } catch (cause) {
      throw io(aside, cause);
    }
    return aside;
  }

  /** Keeps an answer that is no receipt for what was sent; returns the file's name. */
  keepRefused(from: number, answer: string): string {
    makeFolder(this.folder);
    const path = this.free(`${String(from)}.refused`);
    replaceFile(path, answer);
    return path;
  }

  /** The first entries of all cuts that wait, ascending. */
  waiting(): number[] {
    try {
      return readdirSync(this.folder)
        .flatMap((name) => (/^(0|[1-9][0-9]{0,15})$/.test(name) ? [Number(name)] : []))
        .sort((a, b) => a - b);
    } catch (cause) {
      if (isMissing(cause)) return [];
      throw io(this.folder, cause);
    }
  }

  private path(from: number): string {
    return join(this.folder, String(from));
  }

  private free(name: string): string {
    for (let n = 1; ; n++) {
      const path = join(this.folder, `${name}-${String(n)}`);
      if (!existsSync(path)) return path;
    }
  }
}
