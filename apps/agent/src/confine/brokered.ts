import { realpathSync } from 'node:fs';
import type { Plan } from '@nd7/confine';
import { shimPath } from '../recorder/shim.js';
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
  commands(plan: Plan, record: RunRecord, warn: (text: string) => void, unrecorded: (error: unknown) => void): Commands;
}

/**
 * Lays the stub into a door's folder. Where that cannot be, commands run as they would without a broker, and `warn` is told why.
 */
export function brokered(home: string, door: Door, shell: string, warn: (text: string) => void): Brokered | undefined {
  try {
    const folder = door.path;
    layStub(folder, shell, realpathSync(shimPath(home, 'user')));
    return {
      folder,
      variables: shellVariables(shell),
      commands: (plan, record, say, unrecorded) =>
        new Commands({ record, shell, stub: stubOf(shell), environment: plan.environment, warn: say, unrecorded }),
    };
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    warn(`commands of this session are not seen one by one: ${why}`);
    return undefined;
  }
}
