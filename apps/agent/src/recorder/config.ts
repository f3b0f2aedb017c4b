import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** The settings of `$ND7_HOME/config.json` that the recorder obeys. Absent file or member: the first value named here. */
export interface RecorderConfig {
  /** What happens to a tool call that cannot be recorded: it goes on and a gap is left, or it is denied. */
  recording: 'best-effort' | 'required';
  /** Whether the first tool call of a session waits briefly for the receipt that pins the session's key, or is denied without it. */
  pin: 'wait' | 'required';
  /** What is held back besides what the built-in rules find (`"detach": {"patterns": […], "pointers": […]}`). */
  detach: { patterns: string[]; pointers: string[] };
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
    if ((error as NodeJS.ErrnoException).code === 'ENOENT')
      return { recording: 'best-effort', pin: 'wait', detach: NOTHING };
    return strict(`${path} cannot be read (${(error as NodeJS.ErrnoException).code ?? 'error'})`);
  }
  let value: Record<string, unknown>;
  try {
    value = JSON.parse(text) as Record<string, unknown>;
  } catch {
    return strict(`${path} is not JSON`);
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    return strict(`${path} holds no JSON object`);
  const recording = value['recording'] ?? 'best-effort';
  const pin = value['pin'] ?? 'wait';
  if (recording !== 'best-effort' && recording !== 'required')
    return strict(`"recording" in ${path} must be "best-effort" or "required"`);
  if (pin !== 'wait' && pin !== 'required') return strict(`"pin" in ${path} must be "wait" or "required"`);
  const detach = (value['detach'] ?? {}) as { patterns?: unknown; pointers?: unknown };
  const [patterns, pointers] = [detach.patterns ?? [], detach.pointers ?? []];
  if (!isTexts(patterns) || !isTexts(pointers))
    return strict(`"detach" in ${path} must hold "patterns" and "pointers", lists of texts`);
  return { recording, pin, detach: { patterns, pointers } };
}

function strict(problem: string): RecorderConfig {
  return { recording: 'required', pin: 'wait', detach: NOTHING, problem };
}

const NOTHING = { patterns: [], pointers: [] };

function isTexts(value: unknown): value is string[] {
  return Array.isArray(value) && value.every((one) => typeof one === 'string');
}
