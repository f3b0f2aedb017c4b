// What a user named: a session of the home, by its id or the beginning of one.
import { isSessionId } from '@nd7/entry';
import { Home, listSessions, type SessionFiles } from '@nd7/journal';
import { CliError } from '../cli/io.js';
import { safeLine } from './safe.js';

/** The session of the home that `named` is, or the only one that begins so. Throws CliError 2 otherwise. */
export function findSession(home: Home, named: string): SessionFiles {
  const all = listSessions(home);
  const found = all.find(({ session }) => session === named) ?? onlyOne(all, named);
  if (found !== undefined) return found;
  const hint =
    all.length === 0
      ? `nothing is recorded in ${home.root}: \`nd7 init\` attaches an agent`
      : '`nd7 sessions` lists them';
  throw new CliError(2, `there is no session ${safeLine(named.slice(0, 160))} in ${home.root}`, hint, 'no-session');
}

function onlyOne(all: readonly SessionFiles[], start: string): SessionFiles | undefined {
  if (!isSessionId(start)) return undefined;
  const begin = all.filter(({ session }) => session.startsWith(start));
  if (begin.length > 1) {
    const names = begin.slice(0, 5).map(({ session }) => session);
    throw new CliError(
      2,
      `${start} is the beginning of ${String(begin.length)} sessions: ${names.join(', ')}`,
      'write more of the id',
    );
  }
  return begin[0];
}

/** The session written last. */
export function latestSession(home: Home): SessionFiles {
  const [latest] = listSessions(home);
  if (latest !== undefined) return latest;
  throw new CliError(2, `nothing is recorded in ${home.root}`, '`nd7 init` attaches an agent', 'no-session');
}
