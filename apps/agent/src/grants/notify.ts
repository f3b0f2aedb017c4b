// How a person hears that a program inside asks for something, without a line in the middle of what that program draws.
import { spawn } from 'node:child_process';
import type { Io } from '../cli/io.js';
import { NOTIFIER, type OutsidePrograms } from '../confine/outside-programs.js';
import { safeLine } from '../show/safe.js';
import type { Request } from './entry.js';
import { wantedText } from './wanted.js';

/** Not more often: a program that asks in a loop rings once. */
const QUIET_MS = 5_000;
let last = -QUIET_MS;

/** A line where the person wants to be told (`isTold`); else a bell at the terminal, and a notification where the desktop has that. */
export function notify(
  request: Request,
  { project, isTold, outside }: { project: string; isTold: boolean; outside: OutsidePrograms },
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
  if (io.env['DBUS_SESSION_BUS_ADDRESS'] === undefined) return;
  const text = `${what}\nin ${safeLine(project)}\nnd7 grants shows it, and what to type`;
  // The daemon reads markup in the text.
  const body = text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
  try {
    const words = ['--app-name=nd7', '--', 'nd7: a session asks for more', body];
    const { program, environment } = outside.ready([NOTIFIER]);
    spawn(program, words, { stdio: 'ignore', detached: true, cwd: '/', env: environment })
      .on('error', () => undefined)
      .unref();
  } catch {
    // No desktop, or a program that a session may have made.
  }
}
