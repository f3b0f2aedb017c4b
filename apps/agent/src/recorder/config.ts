import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** The settings of `$ND7_HOME/config.json` that the recorder obeys. Absent file or member: the first value named here. */
export interface RecorderConfig {
  /** What happens to a tool call that cannot be recorded: it goes on and a gap is left, or it is denied. */
  recording: 'best-effort' | 'required';
  /** Whether the first tool call of a session waits briefly for the receipt that pins the session's key, or is denied without it. */
  pin: 'wait' | 'required';
  /** Files of more patterns whose values are secrets, as the detach rules take them. */
  secrets: string[];
  /** Set when the file could not be understood; the strictest values then hold. */
  problem?: string;
}

/**
 * Reads config.json. A file that is there but cannot be read as settings must not switch `required` off unseen: then the strict
 * values hold, and `problem` says why.
 */
export function readConfig(home: string): RecorderConfig {
  const path = join(home, 'config.json');
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return { recording: 'best-effort', pin: 'wait', secrets: [] };
    return strict(`${path} cannot be read (${(error as NodeJS.ErrnoException).code ?? 'error'})`);
  }
  let value: Record<string, unknown>;
  try {
    value = JSON.parse(text) as Record<string, unknown>;
  } catch {
    return strict(`${path} is not JSON`);
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return strict(`${path} holds no JSON object`);
  const recording = value['recording'] ?? 'best-effort';
  const pin = value['pin'] ?? 'wait';
  if (recording !== 'best-effort' && recording !== 'required') return strict(`"recording" in ${path} must be "best-effort" or "required"`);
  if (pin !== 'wait' && pin !== 'required') return strict(`"pin" in ${path} must be "wait" or "required"`);
  const secrets = value['secrets'] ?? [];
  if (!Array.isArray(secrets) || secrets.some((one) => typeof one !== 'string')) return strict(`"secrets" in ${path} must be a list of texts`);
  return { recording, pin, secrets: secrets as string[] };
}

function strict(problem: string): RecorderConfig {
  return { recording: 'required', pin: 'wait', secrets: [], problem };
}
