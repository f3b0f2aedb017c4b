import { listSessions, type Home } from '@nd7/journal';
import { CliError } from '../cli/io.js';

/** The session whose id is `text` or begins with it. */
export function findSession(home: Home, text: string): string {
  const all = listSessions(home).map(({ session }) => session);
  if (all.includes(text)) return text;
  const matches = all.filter((session) => session.startsWith(text));
  const [only] = matches;
  if (matches.length === 1 && only !== undefined) return only;
  if (matches.length === 0)
    throw new CliError(
      2,
      `no recorded session is called ${JSON.stringify(text)}`,
      'nd7 sessions lists them',
      'no-session',
    );
  throw new CliError(
    2,
    `${JSON.stringify(text)} is the beginning of ${matches.length} sessions: ${matches.slice(0, 5).join(', ')}`,
    'give more of the id',
    'ambiguous',
  );
}
