// The living sessions of a home, found by their control sockets, and questions to one of them.
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { isWithin } from '@nd7/policy';
import { CliError, type Io } from '../cli/io.js';
import { askAt } from '../recorder/client.js';
import { clientAlive } from '../recorder/peer.js';
import { safeLine } from '../show/safe.js';
import { firstOf } from './author.js';
import { CONTROL, type Living } from './control.js';
import { shellWord } from './wanted.js';

/** A living session and where it answers. */
export type Found = Living & { folder: string };

const FOLDER = /^c-[0-9a-f]{16}$/;
/** A front that is stopped at its terminal does not answer. */
const LIVING_MS = 3_000;
const ANSWER_MS = 30_000;

/** All sessions of a home that answer, the oldest first. */
export async function livingSessions(home: string): Promise<Found[]> {
  const found = await Promise.all(
    foldersIn(home).map(async (name): Promise<Found | undefined> => {
      const folder = join(home, 'run', name);
      const answer = await askAt({ folder, name: CONTROL }, 'living', { timeoutMs: LIVING_MS });
      if (answer === undefined) return undefined;
      const living = JSON.parse(answer.stdout) as Partial<Living> & { error?: { message: string } };
      if (living.error !== undefined)
        throw new CliError(1, living.error.message, 'Ask the person whose session it is.', 'inside');
      return { ...(living as Living), folder };
    }),
  );
  return found.filter((one) => one !== undefined).sort((a, b) => (a.started < b.started ? -1 : 1));
}

/** The session that a person means: the one that is named, the only one, or the one whose project holds the working folder. Throws `CliError`. */
export async function sessionFor(io: Io, named: string | undefined): Promise<Found> {
  const all = await livingSessions(io.home);
  if (all.length === 0) throw none(io.home);
  if (named !== undefined) {
    const matching = all.filter(
      ({ session }) => session === named || session.startsWith(named) || session.startsWith(`run-${named}`),
    );
    if (matching.length === 1) return matching[0] as Found;
    throw choose(
      matching.length === 0
        ? `no living session is called ${safeLine(named)}`
        : `${safeLine(named)} means several sessions`,
      matching.length === 0 ? all : matching,
    );
  }
  if (all.length === 1) return all[0] as Found;
  const here = all.filter(({ project }) => isWithin(io.cwd, project));
  const deepest = Math.max(...here.map(({ project }) => project.length));
  const nearest = here.filter(({ project }) => project.length === deepest);
  if (nearest.length === 1) return nearest[0] as Found;
  throw choose(
    `${all.length} sessions run, and the folder you are in does not say which is meant`,
    nearest.length > 1 ? nearest : all,
  );
}

/** No session answers; one whose program lives is stopped with its front. */
function none(home: string): CliError {
  const stopped = foldersIn(home)
    .map((name) => firstOf(join(home, 'run', name)))
    .filter((first) => first !== undefined && clientAlive(first)).length;
  if (stopped === 0)
    return new CliError(1, 'no session runs that nd7 run has started', 'Start one: nd7 run -- COMMAND', 'no-session');
  const which = stopped === 1 ? 'the session that runs does' : `the ${stopped} sessions that run do`;
  return new CliError(
    1,
    `${which} not answer`,
    'A session that was stopped at its terminal (Ctrl-Z) answers when it goes on: fg',
    'no-answer',
  );
}

function foldersIn(home: string): string[] {
  try {
    return readdirSync(join(home, 'run')).filter((name) => FOLDER.test(name));
  } catch {
    return [];
  }
}

function choose(message: string, sessions: readonly Found[]): CliError {
  const lines = sessions.map(
    ({ session, project, command, started }) =>
      `--session ${session}   ${safeLine(project)}: ${safeLine(command.map(shellWord).join(' ')).slice(0, 60)} (since ${started.slice(11, 16)} UTC)`,
  );
  return new CliError(2, message, ['Say which:', ...lines].join('\n     '), 'which-session');
}

/** Asks a session and answers with what it says. Throws `CliError`, with what the session refuses by. */
export async function askSession<T>(found: Found, op: string, question: object): Promise<T> {
  const payload = Buffer.from(JSON.stringify(question));
  const answer = await askAt({ folder: found.folder, name: CONTROL }, op, { payload, timeoutMs: ANSWER_MS });
  if (answer === undefined)
    throw new CliError(
      1,
      `session ${found.session} does not answer`,
      'It has ended, or is stopped at its terminal (fg).',
      'no-answer',
    );
  const value = JSON.parse(answer.stdout) as T & { error?: { code: string; message: string; hint?: string } };
  if (value.error === undefined) return value;
  const { code, message, hint } = value.error;
  throw new CliError(answer.exit === 2 ? 2 : 1, message, hint, code);
}
