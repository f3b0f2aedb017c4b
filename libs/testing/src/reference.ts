import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';

/** The second implementation: it shares no code with nd7 and is never edited. */
export const REFERENCE = join(import.meta.dirname, '../../../tests/reference/nd7ref.py');

let found: string | undefined;

/** Python's interpreter itself, because what is called python3 may be a slow wrapper; empty where there is none. A test that needs it is skipped by name then. */
export function python(): string {
  found ??=
    spawnSync('python3', ['-c', 'import sys; print(sys.executable)'], { encoding: 'utf8' }).stdout?.trim() ?? '';
  return found;
}

/** What nd7ref.py says of the session in a folder (log.jsonl, and head.json where it is there). Wants `python()`. */
export function referenceVerdict(session: string, folder: string): { verdict: 'intact' | 'broken'; text: string } {
  const head = join(folder, 'head.json');
  const ran = spawnSync(
    python(),
    [REFERENCE, 'verify', session, join(folder, 'log.jsonl'), ...(existsSync(head) ? ['--head', head] : [])],
    { encoding: 'utf8' },
  );
  return { verdict: ran.status === 0 ? 'intact' : 'broken', text: `${ran.stdout ?? ''}${ran.stderr ?? ''}`.trim() };
}
