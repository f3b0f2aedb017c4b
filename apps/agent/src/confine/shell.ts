import { accessSync, constants, symlinkSync } from 'node:fs';
import { isAbsolute, join } from 'node:path';
import { DOOR } from './door.js';

/** The link beside the stub that leads to the shell it stands for: native/shim/src/exec.c. */
const SHELL_LINK = 'shell';
const PLACES = ['/bin', '/usr/bin', '/usr/local/bin', '/opt/homebrew/bin'];

/**
 * The shell that Claude Code would run commands with (2.1.332: CLAUDE_CODE_SHELL, SHELL where it is a bash or a zsh, else the first of both that is
 * there, zsh before bash unless SHELL is a bash). Undefined where there is none.
 */
export function findShell(environment: NodeJS.ProcessEnv): string | undefined {
  const named = [environment['CLAUDE_CODE_SHELL'], environment['SHELL']].filter(
    (path): path is string => path !== undefined && /bash|zsh/.test(path),
  );
  const kinds = /bash$/.test(environment['SHELL'] ?? '') ? ['bash', 'zsh'] : ['zsh', 'bash'];
  const searched = (environment['PATH'] ?? '').split(':').filter((folder) => isAbsolute(folder));
  const found = kinds.flatMap((kind) => PLACES.map((folder) => join(folder, kind)));
  const [first = '', second = ''] = kinds;
  const all = [
    ...named,
    ...searched.map((folder) => join(folder, first)),
    ...found,
    ...searched.map((folder) => join(folder, second)),
  ];
  return all.find((path) => isAbsolute(path) && isRun(path));
}

/** What stands for a shell inside, in the door's folder there: its name says to the client, and to the stub, which kind it is. */
export function stubOf(shell: string, door = DOOR): string {
  return join(door, nameOf(shell));
}

/** Variables by which Claude Code takes the stub for its shell. */
export function shellVariables(shell: string, door = DOOR): Record<string, string> {
  return { CLAUDE_CODE_SHELL: stubOf(shell, door) };
}

/** Lays the stub and the way to the shell into the folder of a door. Throws the system's error. */
export function layStub(folder: string, shell: string, shim: string): void {
  symlinkSync(shim, join(folder, nameOf(shell)));
  symlinkSync(shell, join(folder, SHELL_LINK));
}

const nameOf = (shell: string): string => (shell.includes('zsh') ? 'zsh' : 'bash');

/** Whether a file can be executed. */
export function isRun(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
