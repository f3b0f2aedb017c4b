/**
 * One agent's hook payloads → what the recorder needs to make an entry; and the agent's hook configuration, written and removed.
 *
 * Promises: no payload is refused and none is changed: what a client said stands in `data` token for token, what was wrong with
 * it in `marks`. Editing a settings file keeps every byte that is not nd7's, twice is once, and removing gives back the bytes.
 * Does not: decide what is secret or too large (`@nd7/detach`), write journals, or believe a payload: all of it is `intent`.
 *
 * Called by the recorder and the Node fall-back of `nd7 hook` (readHook), by `nd7 init | uninstall | status | doctor`
 * (installation) and by whatever shows entries (describeEntry). A new agent is one file beside claude-code.ts that exports an
 * `Adapter`, and a line in read.ts.
 */
export { NO_OPINION } from './adapter.js';
export type { Adapter, HookAnswer, HookFacts } from './adapter.js';
export { CLAUDE_EVENTS } from './claude-code.js';
export { CODEX_EVENTS } from './codex.js';
export { adapterFor, readHook } from './read.js';
export type { HookOrigin, HookReading } from './read.js';
export { describeEntry } from './describe.js';
export type { EntryDescription } from './describe.js';
export { diffLines } from './diff.js';
export type { DiffLine } from './diff.js';
export { HooksError } from './errors.js';
export {
  attachedFiles,
  claudeHooks,
  findClaudeHooks,
  installClaudeCode,
  isNd7Handler,
  planClaudeCode,
  uninstallClaudeCode,
} from './install-claude.js';
export type { HookCommand, SettingsChange } from './install-claude.js';
export { valueOf as settingsValue } from './settings-edit.js';
