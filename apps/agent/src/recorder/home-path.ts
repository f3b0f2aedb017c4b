import { homedir } from 'node:os';
import { join, resolve } from 'node:path';

/** ND7_HOME or ~/.nd7 as an absolute path. A file of its own: `nd7 hook` and the recorder load nothing they do not need. */
export function nd7Home(env: NodeJS.ProcessEnv = process.env): string {
  const named = env['ND7_HOME'];
  return named !== undefined && named !== '' ? resolve(named) : join(env['HOME'] ?? homedir(), '.nd7');
}
