import { accessSync, constants, existsSync, mkdirSync, realpathSync, statSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { accessAt, environmentInside, type Ruleset } from '@nd7/policy';
import { layCanary } from '../canary.js';
import { PrepareError } from '../session.js';
import { scan } from '../view/scan.js';
import { compileSeatbelt } from './compile.js';
import type { SeatbeltPlan } from './launch.js';

export interface SeatbeltSession {
  ruleset: Ruleset;
  argv: readonly string[];
  environment: Readonly<Record<string, string | undefined>>;
  variables: Readonly<Record<string, string>>;
  cwd: string;
  nd7Home: string;
  /** Port of the proxy on this machine's loopback; undefined: there is none. */
  proxyPort: number | undefined;
  /** A port on which something else listens, for the self-test. */
  otherPort: number;
  /** A program that is run outside of the profile. */
  execExit?: string;
  terminal: string | undefined;
  library?: string;
}

/** The plan of a session on macOS, and what takes away what was laid down for its start. Throws `PrepareError`. */
export function prepareSeatbelt(session: SeatbeltSession): { plan: SeatbeltPlan; unseen: string[]; clean: () => void } {
  const { ruleset, argv, nd7Home } = session;
  mkdirSync(nd7Home, { recursive: true, mode: 0o700 });
  for (const { path } of ruleset.makeFolders.filter(({ ifPrograms }) => ifPrograms === null))
    mkdirSync(path, { recursive: true, mode: 0o700 });
  const cwd = realpathSync(session.cwd);
  if (!accessAt(ruleset, cwd).read)
    throw new PrepareError(
      `the folder that you are in is hidden inside: ${cwd}`,
      'Change into the project, or allow the folder in your policy.',
    );
  const environment = { ...environmentInside(ruleset.environment, session.environment), ...session.variables };
  const program = programOf(argv[0] ?? '', environment['PATH'] ?? '', cwd);
  const found = scan(ruleset);
  const canary = layCanary(nd7Home);
  const { text, parameters } = compileSeatbelt({
    ruleset,
    realPath: realPathOf,
    kindOf,
    heldByGit: found.held,
    foldsCase: foldsCase(ruleset.project),
    hide: [nd7Home],
    ports: session.proxyPort === undefined ? [] : [session.proxyPort],
    execExit: session.execExit,
    terminal: session.terminal,
  });
  const outside = [dirname(ruleset.project), ruleset.home].find(
    (path) => !accessAt(ruleset, path).write && isWritable(path),
  );
  const plan: SeatbeltPlan = {
    profile: text,
    parameters,
    program,
    argv,
    environment,
    cwd,
    selfTest: { canary: canary.path, outside: outside ?? '/', port: session.otherPort, front: process.pid },
    ...(session.library === undefined ? {} : { library: session.library }),
  };
  return { plan, unseen: found.unseen, clean: canary.clean };
}

/** Where a path leads to, as far as there is something; with the case in which the volume keeps it. */
export function realPathOf(path: string): string {
  try {
    return realpathSync.native(path);
  } catch {
    const above = dirname(path);
    return above === path ? path : join(realPathOf(above), basename(path));
  }
}

function kindOf(path: string): 'file' | 'folder' | undefined {
  const stat = statSync(path, { throwIfNoEntry: false });
  return stat === undefined ? undefined : stat.isDirectory() ? 'folder' : 'file';
}

/** Whether the project is there under another spelling of its name too. */
function foldsCase(project: string): boolean {
  const name = basename(project);
  const other = name === name.toUpperCase() ? name.toLowerCase() : name.toUpperCase();
  return other === name || existsSync(join(dirname(project), other));
}

function isWritable(path: string): boolean {
  try {
    accessSync(path, constants.W_OK);
    return true;
  } catch {
    return false;
  }
}

/** As execvp(3) finds it: by its path, or the first file that can be run in PATH; as it was said where there is none, which is told at the start. */
function programOf(name: string, searched: string, cwd: string): string {
  if (name.includes('/')) return name.startsWith('/') ? name : join(cwd, name);
  const places = searched.split(':').map((folder) => join(folder.startsWith('/') ? folder : join(cwd, folder), name));
  return (
    places.find((path) => {
      try {
        accessSync(path, constants.X_OK);
        return statSync(path).isFile();
      } catch {
        return false;
      }
    }) ?? name
  );
}
