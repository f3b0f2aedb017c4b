import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ExitCode, Io } from '../cli/io.js';

/** An Io that keeps what a command prints. */
export interface CapturedIo extends Io {
  readonly lines: string[];
  readonly values: Record<string, unknown>[];
  /** Each update of a progress line. */
  readonly updates: [number, number | undefined][];
  exitCode(): ExitCode;
}

export function capturedIo(options: {
  home: string;
  cwd?: string;
  isJson?: boolean;
  isTerminal?: boolean;
  columns?: number;
}): CapturedIo {
  const lines: string[] = [];
  const values: Record<string, unknown>[] = [];
  const updates: [number, number | undefined][] = [];
  let exit: ExitCode = 0;
  return {
    home: options.home,
    isJson: options.isJson ?? false,
    isTerminal: options.isTerminal ?? false,
    columns: options.columns ?? 80,
    env: {},
    cwd: options.cwd ?? options.home,
    lines,
    values,
    updates,
    out: (line = '') => void lines.push(line),
    err: (line = '') => void lines.push(line),
    json: (value) => void values.push(JSON.parse(JSON.stringify(value)) as Record<string, unknown>),
    paint: (_style, text) => text,
    progress: () => ({ update: (done, total) => void updates.push([done, total]), end: () => undefined }),
    setExit: (code) => {
      if (code > exit) exit = code;
    },
    exitCode: () => exit,
  };
}

const folders: string[] = [];

/** A folder of this test run; `removeFolders` takes them all away. */
export function throwAwayFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'nd7-cli-'));
  folders.push(folder);
  return folder;
}

export function removeFolders(): void {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
}
