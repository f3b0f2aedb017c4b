// How a person hears that a program inside asks for something, without a line in the middle of what that program draws.
import { spawn } from 'node:child_process';
import { accessSync, constants } from 'node:fs';
import { join } from 'node:path';
import type { Io } from '../cli/io.js';
import { safeLine } from '../show/safe.js';
import type { Request } from './entry.js';
import { wantedText } from './wanted.js';

/** Not more often: a program that asks in a loop rings once. */
const QUIET_MS = 5_000;
let last = -QUIET_MS;

/** Where a desktop has its program. Not PATH: what it names first may be a folder of the project, into which the session writes. */
export const DESKTOP_FOLDERS = ['/usr/bin', '/bin', '/usr/local/bin', '/run/current-system/sw/bin'];

/**
 * A line where the person wants to be told (`isTold`); else a bell at the terminal, and a notification where the desktop has that: by a program
 * in `folders`, none of which the session may write to.
 */
export function notify(
  request: Request,
  { project, isTold, folders }: { project: string; isTold: boolean; folders: readonly string[] },
  io: Io,
): void {
  const what = safeLine(wantedText(request.wanted));
  if (isTold && !io.isJson)
    io.err(`nd7: ${request.id}: a program inside asks for ${what}: nd7 allow ${request.id}, or nd7 deny ${request.id}`);
  const now = performance.now();
  if (now - last < QUIET_MS) return;
  last = now;
  // One control character is the one thing that disturbs no full-screen program, wherever in its own output it falls.
  if (!isTold && io.isTty(2)) io.ring();
  const program = programIn('notify-send', folders);
  if (program === undefined || io.env['DBUS_SESSION_BUS_ADDRESS'] === undefined) return;
  const text = `${what}\nin ${safeLine(project)}\nnd7 grants shows it, and what to type`;
  // The daemon reads markup in the text.
  const body = text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
  spawn(program, ['--app-name=nd7', '--', 'nd7: a session asks for more', body], {
    stdio: 'ignore',
    detached: true,
    cwd: '/',
  })
    .on('error', () => undefined)
    .unref();
}

function programIn(name: string, folders: readonly string[]): string | undefined {
  return folders
    .map((folder) => join(folder, name))
    .find((file) => {
      try {
        accessSync(file, constants.X_OK);
        return true;
      } catch {
        return false;
      }
    });
}
