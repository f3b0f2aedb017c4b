import { realpathSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Plan, Shown } from '@nd7/confine';
import { shimPath } from '../recorder/shim.js';
import type { Attachment } from './attach.js';
import { PASSWD } from './attach-codex.js';
import { Commands } from './commands.js';
import type { Door } from './door.js';
import type { RunRecord } from './record.js';
import { layStub, shellVariables, stubOf } from './shell.js';

/** What it takes for an agent's commands to be run by the session's broker, and who decides about them. */
export interface Brokered {
  /** For the plan: the folder of the door. */
  folder: string;
  /** For the program: what it takes for its shell. */
  variables: Readonly<Record<string, string>>;
  /** Where the view can show another file in a place: what an agent reads its shell from. */
  shows: readonly Shown[];
  commands(plan: Plan, record: RunRecord, warn: (text: string) => void, unrecorded: (error: unknown) => void): Commands;
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
    if (passwd !== undefined) writeFileSync(shown, passwd, { mode: 0o644, encoding: 'latin1', flag: 'wx' });
    return {
      folder,
      variables: passwd === undefined ? shellVariables(shell) : {},
      shows: passwd === undefined ? [] : [{ path: PASSWD, source: shown }],
      commands: (plan, record, say, unrecorded) =>
        new Commands({
          record,
          shell,
          stub: stubOf(shell),
          environment: plan.environment,
          // An agent that takes the stub for the user's own shell gives it hooks and snapshots too.
          takesUnannounced: passwd === undefined,
          warn: say,
          unrecorded,
        }),
    };
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    warn(`commands of this session are not seen one by one: ${why}`);
    return undefined;
  }
}
