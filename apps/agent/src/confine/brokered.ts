import { realpathSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Plan, Shown } from '@nd7/confine';
import { shimPath } from '../recorder/shim.js';
import type { Attachment } from './attach.js';
import { PASSWD } from './attach-codex.js';
import { Commands, type CommandsInput } from './commands.js';
import type { Door } from './door.js';
import { layStub, shellVariables, stubOf } from './shell.js';

/** What is known of a session once it is prepared. */
export interface BrokeredSession extends Pick<CommandsInput, 'record' | 'warn' | 'readsMore' | 'unrecorded'> {
  plan: Plan;
  /** The door's folder inside. */
  door: string;
}

/** What it takes for an agent's commands to be run by the session's broker, and who decides about them. */
export interface Brokered {
  /** For the plan: the folder of the door. */
  folder: string;
  /** For the program: what it takes for its shell, in the folder that the door has inside. */
  variables(door: string): Readonly<Record<string, string>>;
  /** What an agent reads its shell from, in its place: by the view, or where there is none by the supervisor, who opens what is read then. */
  shows: readonly Shown[];
  /** Has it name the stub in the folder that the door has inside. */
  place(door: string): void;
  commands(session: BrokeredSession): Commands;
}

/**
 * Lays the stub into a door's folder. Where that cannot be, commands run as they would without a broker, and `warn` is told why.
 */
export function brokered(
  home: string,
  door: Door,
  { shell, passwd }: Pick<Attachment, 'shell' | 'passwd'>,
  warn: (text: string) => void,
): Brokered | undefined {
  if (shell === undefined) return undefined;
  try {
    const folder = door.path;
    layStub(folder, shell, realpathSync(shimPath(home, 'user')));
    const shown = join(folder, 'passwd');
    const lay = (text: string, flag: 'wx' | 'w'): void =>
      writeFileSync(shown, text, { mode: 0o644, encoding: 'latin1', flag });
    if (passwd !== undefined) lay(passwd, 'wx');
    return {
      folder,
      variables: (inside) => (passwd === undefined ? shellVariables(shell, inside) : {}),
      place: (inside) => {
        if (passwd !== undefined) lay(passwd.replace(`:${stubOf(shell)}`, `:${stubOf(shell, inside)}`), 'w');
      },
      shows: passwd === undefined ? [] : [{ path: PASSWD, source: shown }],
      commands: ({ plan, door: inside, ...session }) =>
        new Commands({
          ...session,
          shell,
          stub: stubOf(shell, inside),
          environment: plan.environment,
          // An agent that takes the stub for the user's own shell gives it hooks and snapshots too.
          takesUnannounced: passwd === undefined,
        }),
    };
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    warn(`commands of this session are not seen one by one: ${why}`);
    return undefined;
  }
}
