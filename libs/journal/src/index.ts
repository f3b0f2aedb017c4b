/**
 * A session on disk (docs/format.md): its folder, log, head, keys, detached values and torn tails.
 *
 * Promises: entries of one session form one chain whoever appends (recorder, fall-back hook, several at once); what `sync` has
 * acknowledged survives a crash; nothing a crash leaves is dropped silently; old signing keys are gone once a newer seal is on the disk. README.md beside
 * this lib tells the life of an entry step by step, and what a crash leaves at each.
 * Does not promise: to notice that something before the last seal was changed (verifying does), nor that a disk which lies about fsync kept anything.
 *
 * Called by the recorder and the fall-back hook (writing), by the CLI and by `ship` (reading).
 */
export { Home, openHome } from './home.js';
export { machineKey } from './session-keys.js';
export { chainOf } from './continuation.js';
export { continueSession, openSession, type EndReason, type OpenOptions } from './open.js';
export { Journal, type Continues, type JournalDraft } from './journal.js';
export type { Appended } from './session-log.js';
export {
  listSessions,
  readFirst,
  readHead,
  readReceipts,
  receiptCounts,
  SessionReader,
  startOf,
  type SessionFiles,
} from './read.js';
export { readBlob, type Blob } from './blobs.js';
export { realDisk, type Disk, type Step } from './disk.js';
export { JournalError, type JournalCode } from './failure.js';
