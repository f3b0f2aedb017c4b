import {
  closeSync,
  constants,
  existsSync,
  fstatSync,
  ftruncateSync,
  lstatSync,
  mkdirSync,
  openSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname } from 'node:path';
import { CliError } from '../cli/io.js';

/**
 * The file for a profile, opened before anything runs: what runs inside may write where it lies, and could meanwhile have put a link in its
 * place, or in that of a folder above it, which nd7 would follow outside.
 */
export class ProfileFile {
  private constructor(
    private readonly path: string,
    private readonly fd: number,
    private readonly isNew: boolean,
  ) {}

  /** `isReplaced`: a file that is there may be written over. Throws `CliError`. */
  static open(path: string, isReplaced: boolean): ProfileFile {
    const { O_CREAT, O_EXCL, O_NOFOLLOW, O_WRONLY } = constants;
    try {
      mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
      const isNew = !existsSync(path);
      const fd = openSync(path, O_WRONLY | O_NOFOLLOW | O_CREAT | (isReplaced && !isNew ? 0 : O_EXCL), 0o600);
      return new ProfileFile(path, fd, isNew);
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      throw new CliError(
        1,
        code === 'ELOOP' ? `${path} is a link` : `${path} cannot be written (${code ?? 'error'})`,
        'Run again with another --write.',
      );
    }
  }

  /** Writes the text into the file that was opened. Throws `CliError` where its name leads to another by now. */
  write(text: string): void {
    try {
      ftruncateSync(this.fd);
      writeFileSync(this.fd, text);
    } catch (error) {
      throw notWritten(`${this.path} cannot be written (${(error as NodeJS.ErrnoException).code ?? 'error'})`);
    }
    const isThere = this.#isThere();
    closeSync(this.fd);
    if (!isThere) throw notWritten(`what ran inside has moved ${this.path}, or put something else in its place`);
  }

  /** Nothing was learned: a file that was made for it goes. */
  abandon(): void {
    if (this.isNew && this.#isThere()) unlinkSync(this.path);
    closeSync(this.fd);
  }

  #isThere(): boolean {
    const [mine, there] = [fstatSync(this.fd), lstatSync(this.path, { throwIfNoEntry: false })];
    return mine.ino === there?.ino && mine.dev === there.dev;
  }
}

const notWritten = (what: string): CliError =>
  new CliError(1, what, 'Run again with another --write; the record of the session has the profile too.');
