import { readFileSync, renameSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { readConfig } from './config.js';
import type { RecorderConfig } from './config.js';
import { BIN } from './start.js';

/**
 * Writes `run/shim.conf`: what the shim needs to know when no recorder answers (docs/protocol/hook-socket.md). Nothing is written where it
 * says so already.
 */
export function writeShimConf(home: string, recording: RecorderConfig['recording']): void {
  writeConf(join(home, 'run', 'shim.conf'), recording, 0o600);
}

/**
 * Writes the administrator's `shim.conf` beside a shim that many users run: which Node and which nd7 it starts for each of them, and the policy that
 * none of them can loosen.
 */
export function writeManagedConf(shim: string, recording: RecorderConfig['recording']): void {
  writeConf(join(dirname(shim), 'shim.conf'), recording, 0o644);
}

/** The first folder or file on the way to Node or nd7 that other users cannot pass or read; undefined when all of them can run both. */
export function closedToOthers(): string | undefined {
  for (const program of [process.execPath, BIN]) {
    if ((statSync(program).mode & 0o004) === 0) return program;
    for (let folder = dirname(program); folder !== dirname(folder); folder = dirname(folder)) {
      if ((statSync(folder).mode & 0o001) === 0) return folder;
    }
  }
  return undefined;
}

function writeConf(path: string, recording: RecorderConfig['recording'], mode: number): void {
  const text = `# Written by nd7; change config.json instead.\nnode=${process.execPath}\nmain=${BIN}\nrecording=${recording}\n`;
  try {
    if (readFileSync(path, 'utf8') === text) return;
  } catch {
    // not there yet
  }
  const temporary = `${path}.${process.pid}`;
  writeFileSync(temporary, text, { mode });
  renameSync(temporary, path);
}

/** config.json, read again when the file has changed; the shim's copy of the policy follows it. */
export class ConfigReader {
  private state = '';
  private config: RecorderConfig | undefined;

  constructor(private readonly home: string) {}

  get(): RecorderConfig {
    const stat = statSync(join(this.home, 'config.json'), { throwIfNoEntry: false });
    const state = stat === undefined ? 'none' : `${stat.mtimeMs} ${stat.size} ${stat.ino}`;
    if (this.config !== undefined && state === this.state) return this.config;
    this.state = state;
    this.config = readConfig(this.home);
    try {
      writeShimConf(this.home, this.config.recording);
    } catch {
      // The shim then goes by the policy of before; the doctor compares the two.
    }
    return this.config;
  }
}
