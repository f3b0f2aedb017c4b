// The payloads that a real Claude Code wrote to its hooks (tests/captures), as a session of its own.
import { randomUUID } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** The payloads of one captured scenario in the order they arrived, under a new session id. */
export function capturedSession(root: string, scenario: string): { session: string; payloads: string[] } {
  const folder = join(root, 'tests/captures/claude-code');
  const names = readdirSync(folder)
    .filter((name) => name.startsWith(`${scenario}--`))
    .sort();
  if (names.length === 0) throw new Error(`no capture called ${scenario} in tests/captures/claude-code`);
  const session = randomUUID();
  const payloads = names.map((name) =>
    readFileSync(join(folder, name), 'utf8').replace(/("session_id":\s*")[^"]*"/, `$1${session}"`),
  );
  return { session, payloads };
}
