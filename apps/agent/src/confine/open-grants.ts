// What a person widens a session by, from its start on: tiers of nd7's own and boxes of others alike.
import { reasonOf } from '../cli/full-disk.js';
import { SessionGrants } from '../grants/session-grants.js';
import type { Door } from './door.js';
import type { OutsidePrograms } from './outside-programs.js';
import type { RunRecord } from './record.js';
import type { RunRequest } from './session-request.js';

/** What widens the session while it lives; undefined where that cannot be had: it is then as narrow as it was started. */
export async function openGrants(
  request: RunRequest,
  record: RunRecord,
  door: Door,
  outside: OutsidePrograms,
): Promise<SessionGrants | undefined> {
  const { policies, ruleset, argv, attachment, cwd } = request;
  if (policies === undefined) return undefined;
  const agent = attachment?.agent ?? null;
  const living = { session: record.id, project: ruleset.project, cwd, command: argv, agent, pid: process.pid };
  try {
    const grants = await SessionGrants.open({
      policies,
      ruleset,
      record,
      folder: door.control,
      living: { ...living, started: new Date().toISOString() },
      reach: outside.reach,
      asked: (asked) => request.asked?.(asked, outside),
    });
    door.receive(grants);
    return grants;
  } catch (error) {
    request.warn(`nd7 allow will not reach this session: ${reasonOf(error, request.nd7Home)}`);
    return undefined;
  }
}
