import type { HeadStatement, Receipt, Trust } from '@nd7/receipt';
import { checkReceiptItself } from '@nd7/receipt';
import { verifySignatures } from '@nd7/signing';
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { io, isMissing, makeFolder, readText, replaceFile } from './disk.js';

/** The receipts held for one session: `sessions/<id>/receipts/<entries>.tlog-proof`. What is in here was verified before it was written. */
export class ReceiptStore {
  constructor(
    private readonly folder: string,
    private readonly trust: Trust,
  ) {}

  /** Counts for which there is a receipt file, ascending. */
  counts(): number[] {
    try {
      return readdirSync(this.folder)
        .flatMap((name) => {
          const [, count] = /^([1-9][0-9]{0,15})\.tlog-proof$/.exec(name) ?? [];
          return count === undefined ? [] : [Number(count)];
        })
        .sort((a, b) => a - b);
    } catch (cause) {
      if (isMissing(cause)) return [];
      throw io(this.folder, cause);
    }
  }

  /** The receipt for a count, if the file holds one that is still good and is this machine's and session's. */
  async read(count: number, of: Pick<HeadStatement, 'machine' | 'session'>): Promise<Receipt | undefined> {
    const text = readText(this.path(count));
    if (text === undefined) return undefined;
    const verdict = await checkReceiptItself(text, this.trust, verifySignatures);
    if (!verdict.ok) return undefined;
    const { to, machine, session } = verdict.receipt.statement;
    return to === count && machine === of.machine && session === of.session ? verdict.receipt : undefined;
  }

  /** Keeps a verified receipt in the place of its name; what stood there under it stays, under a name of its own. */
  put(name: number | string, text: string): void {
    makeFolder(this.folder);
    const path = this.path(name);
    const present = readText(path);
    if (present === text) return;
    if (present !== undefined) replaceFile(this.free(name), present);
    replaceFile(path, text);
  }

  /** Keeps a second receipt for a count beside the first, which stays what it is. */
  putBeside(count: number, text: string): void {
    makeFolder(this.folder);
    replaceFile(this.free(count), text);
  }

  has(name: string): boolean {
    return existsSync(this.path(name));
  }

  private path(name: number | string): string {
    return join(this.folder, `${String(name)}.tlog-proof`);
  }

  private free(name: number | string): string {
    for (let n = 2; ; n++) {
      const path = this.path(`${String(name)}-${String(n)}`);
      if (!existsSync(path)) return path;
    }
  }
}
