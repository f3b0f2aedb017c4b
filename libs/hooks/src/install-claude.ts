import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { CLAUDE_EVENTS } from './claude-code.js';
import { addRegistrations, findRegistrations, removeRegistrations, valueOf } from './settings-edit.js';
import type { Registration } from './settings-edit.js';
import { readSettings, settingsText, writeSettings } from './settings-file.js';

/** The command a hook runs: exec form, so that no shell and no quoting stand between the client and nd7. */
export interface HookCommand {
  command: string;
  args: string[];
}

/** What an installation would do, or did. `before` and `after` are undefined where there is no file. */
export interface SettingsChange {
  path: string;
  before: string | undefined;
  after: string | undefined;
  changed: boolean;
  /** uninstall only: whether the file got back exactly the bytes it had before nd7. */
  restored?: 'exact' | 'entries-removed';
}

/** Seconds a client waits for one hook. Far above what the shim needs and below what a person would sit through. */
const TIMEOUT = 30;

/** True for a handler that nd7 wrote, this version or another, with the shim or with node. */
export function isNd7Handler(handler: unknown): boolean {
  const { command, args } = (handler ?? {}) as { command?: unknown; args?: unknown };
  if (typeof command !== 'string' || !Array.isArray(args)) return false;
  const words = args.map(String);
  if (!words.includes('--agent')) return false;
  if (basename(command) === 'nd7-shim') return true;
  const program = /^nd7(\.exe)?$/.test(basename(command)) || words.some((word) => /(^|[\\/])nd7(\.js)?$/.test(word));
  return program && words.includes('hook');
}

/** Every event that is safe to register, each with the one handler. */
export function claudeRegistrations(hook: HookCommand): Registration[] {
  return Object.entries(CLAUDE_EVENTS)
    .filter(([, event]) => event.register)
    .map(([event, { timeout }]) => ({
      event,
      group: { hooks: [{ type: 'command', command: hook.command, args: hook.args, timeout: timeout ?? TIMEOUT }] },
    }));
}

/** The `hooks` member of settings that attach nd7, for whoever hands settings to the client instead of writing a file. */
export function claudeHooks(hook: HookCommand): Record<string, Record<string, unknown>[]> {
  const hooks: Record<string, Record<string, unknown>[]> = {};
  for (const { event, group } of claudeRegistrations(hook)) (hooks[event] ??= []).push(group);
  return hooks;
}

/** What `installClaudeCode` would write; throws HooksError on a file it would not touch. */
export function planClaudeCode(settingsPath: string, hook: HookCommand): SettingsChange {
  const { bytes } = readSettings(settingsPath);
  const before = bytes === undefined ? undefined : settingsText(bytes, settingsPath);
  const after = addRegistrations(before ?? '', claudeRegistrations(hook), isNd7Handler, settingsPath);
  return { path: settingsPath, before, after, changed: after !== before };
}

/**
 * Attaches nd7 to Claude Code by one settings file (user, project or a managed drop-in: the caller chooses the path).
 * All else in the file stays byte for byte; a second call changes nothing. What was there is kept under `home`/attached, so
 * that `uninstallClaudeCode` gives back the exact bytes.
 */
export function installClaudeCode(options: { settingsPath: string; hook: HookCommand; home: string }): SettingsChange {
  const plan = planClaudeCode(options.settingsPath, options.hook);
  if (!plan.changed || plan.after === undefined) return plan;
  const file = readSettings(options.settingsPath);
  const kept = readKept(options.home, file.real);
  // Installed over an older registration of ours: the original is the one kept then, as long as nobody wrote the file since.
  const original =
    kept !== undefined && kept.after === digest(plan.before)
      ? kept.before
      : originalOf(plan.before, options.settingsPath);
  writeKept(options.home, file.real, { before: original, after: digest(plan.after) });
  writeSettings(file, Buffer.from(plan.after, 'utf8'));
  return plan;
}

/** Removes nd7 from a settings file: exactly the bytes from before where nobody else wrote since, else only our entries. */
export function uninstallClaudeCode(options: { settingsPath: string; home: string; dryRun?: boolean }): SettingsChange {
  const file = readSettings(options.settingsPath);
  const before = file.bytes === undefined ? undefined : settingsText(file.bytes, options.settingsPath);
  const kept = readKept(options.home, file.real);
  if (before === undefined) return { path: options.settingsPath, before, after: undefined, changed: false };
  const exact = kept !== undefined && kept.after === digest(before);
  const removed = exact
    ? (kept.before ?? undefined)
    : removeRegistrations(before, isNd7Handler, options.settingsPath, kept?.before ?? undefined);
  // A file that nd7 made and that holds nothing else goes away again.
  const after =
    !exact && kept?.before === null && removed !== undefined && isEmptyObject(removed) ? undefined : removed;
  const change: SettingsChange = {
    path: options.settingsPath,
    before,
    after,
    changed: after !== before,
    restored: exact ? 'exact' : 'entries-removed',
  };
  if (options.dryRun === true) return change;
  // From here on the recorder must not take the removal for somebody silencing it; where it fails, nd7 is attached as before. A home that cannot be
  // written keeps nobody from detaching: nothing is recorded there, no alarm either.
  const note = (now: Kept | undefined): void => {
    try {
      if (now !== undefined) writeKept(options.home, file.real, now);
      else rmSync(keptPath(options.home, file.real), { force: true });
    } catch {
      // what is left over is marked, or names a file that nd7 does not stand in
    }
  };
  if (kept !== undefined) note({ ...kept, removing: true });
  try {
    if (change.changed) writeSettings(file, after === undefined ? undefined : Buffer.from(after, 'utf8'));
  } catch (error) {
    if (kept !== undefined) note(kept);
    throw error;
  }
  note(undefined);
  return change;
}

/** Where nd7 stands in a settings file: events and the command each runs. Broken or missing files have none. */
export function findClaudeHooks(settingsPath: string): { event: string; command: string; args: string[] }[] {
  const text = settingsText(readSettings(settingsPath).bytes, settingsPath);
  if (text.trim() === '') return [];
  return findRegistrations(text, isNd7Handler, settingsPath).map(({ event, handler }) => ({
    event,
    command: String(handler['command']),
    args: (handler['args'] as unknown[]).map(String),
  }));
}

/** The settings files nd7 is attached to, with symbolic links resolved. */
export function attachedFiles(home: string): string[] {
  try {
    return readdirSync(join(home, 'attached')).flatMap((name) => {
      try {
        const kept = JSON.parse(readFileSync(join(home, 'attached', name), 'utf8')) as {
          path?: unknown;
          removing?: unknown;
        };
        return typeof kept.path === 'string' && kept.removing !== true ? [kept.path] : [];
      } catch {
        return [];
      }
    });
  } catch {
    return []; // attached to nothing
  }
}

interface Kept {
  /** Text of the file before nd7, null when there was none. */
  before: string | null;
  /** SHA-256 of the text nd7 wrote. */
  after: string;
  /** An uninstall is under way. */
  removing?: true;
}

function originalOf(before: string | undefined, where: string): string | null {
  return before === undefined ? null : removeRegistrations(before, isNd7Handler, where);
}

function keptPath(home: string, real: string): string {
  return join(home, 'attached', `${createHash('sha256').update(real).digest('hex').slice(0, 32)}.json`);
}

function readKept(home: string, real: string): Kept | undefined {
  try {
    const kept = JSON.parse(readFileSync(keptPath(home, real), 'utf8')) as Partial<Kept>;
    return typeof kept.after === 'string' && (kept.before === null || typeof kept.before === 'string')
      ? { before: kept.before, after: kept.after }
      : undefined;
  } catch {
    return undefined; // without it uninstall removes our entries one by one
  }
}

function writeKept(home: string, real: string, kept: Kept): void {
  mkdirSync(join(home, 'attached'), { recursive: true, mode: 0o700 });
  writeFileSync(keptPath(home, real), `${JSON.stringify({ path: real, ...kept })}\n`, { mode: 0o600 });
}

function digest(text: string | undefined): string {
  return createHash('sha256')
    .update(text ?? '')
    .digest('hex');
}

function isEmptyObject(text: string): boolean {
  const value = valueOf(text);
  return typeof value === 'object' && value !== null && Object.keys(value).length === 0;
}
