// Where an export goes: a new folder, or a tar archive.
import { once } from 'node:events';
import { createWriteStream, mkdirSync, rmSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Writable } from 'node:stream';
import { makeFolders } from '@nd7/kernel';
import { CliError } from '../cli/io.js';
import { tarEnd, tarHeader, tarPadding } from './tar.js';

/** Takes files in order; `size` must be what the chunks add up to. */
export interface Sink {
  add(name: string, size: number, chunks: Iterable<Uint8Array> | AsyncIterable<Uint8Array>): Promise<void>;
  /** All is written. */
  end(): Promise<void>;
  /** Leaves nothing half-written behind. */
  abandon(): void;
}

/** A folder that is made for it; one that exists is refused, so that nothing of two exports is mixed. */
export function folderSink(folder: string): Sink {
  try {
    makeFolders(dirname(folder));
    mkdirSync(folder, { mode: 0o700 });
  } catch (error) {
    const exists = (error as NodeJS.ErrnoException).code === 'EEXIST';
    throw new CliError(
      exists ? 2 : 1,
      exists ? `${folder} is there already` : `${folder} cannot be made: ${(error as Error).message}`,
      exists ? 'name another folder with --out' : undefined,
    );
  }
  return {
    async add(name, _size, chunks) {
      const path = join(folder, name);
      makeFolders(dirname(path), 0o700);
      const file = await open(path, 'wx', 0o600);
      try {
        for await (const chunk of chunks) await file.writeFile(chunk);
        await file.sync();
      } finally {
        await file.close();
      }
    },
    end: () => Promise.resolve(),
    abandon: () => rmSync(folder, { recursive: true, force: true }),
  };
}

/** A tar archive in a new file, or on `stream`. All names go below `root`. */
export function tarSink(path: string | Writable, root: string, time: number): Sink {
  const isFile = typeof path === 'string';
  const out = isFile ? createWriteStream(path, { flags: 'wx', mode: 0o600 }) : path;
  let failed: Error | undefined;
  out.once('error', (error: NodeJS.ErrnoException) => {
    failed =
      (error as NodeJS.ErrnoException).code === 'EEXIST'
        ? new CliError(2, `${String(path)} is there already`, 'name another file')
        : isFile
          ? new CliError(1, `${path} cannot be written: ${error.message}`)
          : error;
  });
  const write = async (bytes: Uint8Array) => {
    if (failed) throw failed;
    if (!out.write(bytes))
      await once(out, 'drain').catch((error: unknown) => Promise.reject(failed ?? (error as Error)));
  };
  return {
    async add(name, size, chunks) {
      await write(tarHeader(`${root}/${name}`, size, time));
      let written = 0;
      for await (const chunk of chunks) {
        written += chunk.length;
        await write(new Uint8Array(chunk)); // the stream keeps it; a reader may reuse its buffer
      }
      if (written !== size) throw new CliError(1, `${name} changed while it was exported`);
      await write(tarPadding(size));
    },
    async end() {
      await write(tarEnd());
      if (!isFile) return;
      await new Promise<void>((resolve, reject) => {
        out.end(() => (failed ? reject(failed) : resolve()));
      });
      if (failed) throw failed;
    },
    abandon() {
      if (isFile && !(failed instanceof CliError)) rmSync(path, { force: true });
    },
  };
}
