// Shell completion: `nd7 complete bash|zsh|fish|powershell` prints the script, which asks `nd7 complete -- …` again.
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import tab from '@bomb.sh/tab/commander';
import type { Command } from 'commander';
import type { Io } from './io.js';

/** Commands that take `--session`, the id of a living one. */
const TAKES_LIVING = ['allow', 'deny', 'revoke', 'grants', 'why'];
const RIGHTS = ['read', 'write', 'net', 'socket'];

/** Commands whose argument is the id of a recorded session. */
const TAKES_SESSION = ['log', 'show', 'verify', 'ship', 'receipt', 'export'];

function sessionIds(home: string): string[] {
  try {
    return readdirSync(join(home, 'sessions'), { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .map((entry) => entry.name);
  } catch {
    return []; // nothing recorded yet
  }
}

/** Of those that live and those that have died without an end; which is which would have to be asked. */
function runIds(home: string): string[] {
  return sessionIds(home).filter((id) => id.startsWith('run-'));
}

export function addCompletion(program: Command, io: Io): void {
  const completion = tab(program);
  for (const name of TAKES_SESSION) {
    for (const argument of completion.commands.get(name)?.arguments.values() ?? []) {
      argument.handler = (complete) => {
        for (const id of sessionIds(io.home)) complete(id, 'session');
      };
    }
  }
  for (const name of TAKES_LIVING) {
    const option = completion.commands.get(name)?.options.get('session');
    if (option !== undefined)
      option.handler = (complete) => {
        for (const id of runIds(io.home)) complete(id, 'session');
      };
  }
  for (const name of ['allow', 'deny', 'ask']) {
    const [right] = completion.commands.get(name)?.arguments.values() ?? [];
    if (right !== undefined)
      right.handler = (complete) => {
        for (const one of RIGHTS) complete(one, 'what is granted');
      };
  }
}
