/**
 * The chain of a session: genesis, links, heads, seals, and the walk from bytes to a verdict (docs/format.md).
 *
 * Promises: the first entry that does not check out, with the one reason the format gives it, whatever the bytes are and however
 * they are cut; memory bounded by one line and one chunk; the same verdict from one walk and from parts walked apart and stitched.
 * A log's content never throws: verdicts are values, `ChainError` is a caller's mistake.
 * Does not promise: that an intact chain is the one that was recorded. Without seals and receipts it only says that the file fits itself;
 * what a success rests on is said by @nd7/verify, the only place that says "verified".
 * Called by verify (CLI, browser), by the journal for its own log, and by the vault for every segment.
 */
export { ChainError } from './error.js';
export { certMessage, genesis, sealMessage, type LogReason } from './link.js';
export { formatHeadFile, parseHeadFile, type Head } from './head.js';
export { ChainWalk, walk, type WalkOptions } from './walk.js';
export { PartWalk, type LineAt, type PartOptions, type PartResult, type PartStart } from './part.js';
export type { Label } from './heads.js';
export { headMarks, stitchParts, type StitchOptions, type WalkResult } from './stitch.js';
export { Members } from './members.js';
export type { SealState } from './seal.js';
