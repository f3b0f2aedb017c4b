import { readFileSync, renameSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { readConfig } from './config.js';
import type { RecorderConfig } from './config.js';
import { BIN } from './start.js';

/**
 * Writes `run/shim.conf`: what the shim needs to know when no recorder answers (docs/protocol/hook-socket.md). Nothing is written where it
 * says so already.
 */
export function writeShimConf(home: string, recording: RecorderConfig['recording']): void {
  const path = join(home, 'run', 'shim.conf');
  const text = `# Written by nd7; change config.json instead.\nnode=${process.execPath}\nmain=${BIN}\nrecording=${recording}\n`;
  try {
    if (readFileSync(path, 'utf8') === text) return;
  } catch {
    // not there yet
  }
  const temporary = `${path}.${process.pid}`;
  writeFileSync(temporary, text, { mode: 0o600 });
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
