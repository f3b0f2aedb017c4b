import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { machineKey, openHome, openSession, type JournalDraft } from '@nd7/journal';
import { systemClock, systemRandom } from '@nd7/signing';
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
    isTty: () => false,
    ring: () => undefined,
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

/** A home with one recorded session: entry 0, then an entry for each draft, sealed and closed. */
export async function recordedHome(session: string, drafts: readonly JournalDraft[]): Promise<string> {
  const root = join(throwAwayFolder(), 'home');
  const home = openHome(root);
  const journal = await openSession(home, session, {
    clock: systemClock,
    random: systemRandom,
    machine: machineKey(home),
    start: { agent: 'claude-code' },
  });
  await journal.append([...drafts], { sync: true });
  await journal.close({ seal: true });
  return root;
}

/** A draft as the recorder makes one of a hook payload. */
export function said(kind: string, data: object, more: Partial<JournalDraft> = {}): JournalDraft {
  return { time: '2026-11-29T19:41:00.123Z', source: 'intent:claude-code', kind, data: JSON.stringify(data), ...more };
}
