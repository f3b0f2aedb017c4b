/**
 * The transparency-log world, one file for each of its documents: Ed25519 in the strict form (`ed25519.ts`, docs/receipt.md), C2SP
 * signed-note, tlog-checkpoint, tlog-tiles, tlog-cosignature, tlog-policy, and the Merkle tree of RFC 6962 (`merkle.ts` checks, `prove.ts` makes).
 *
 * It promises: no input, however hostile, makes a parser or a check throw or lose a digit; what is refused is refused by value. It holds
 * no keys, reads no files, knows no session. Hashes are SHA-256 as 32 bytes, counts above 2^53 - 1 are bigints.
 * Called by everything that makes or checks a signature or a receipt, in Node and in the browser.
 */
export { isStrictKey, nobleVerifier, strictVerifier, verifiesNow } from './ed25519.js';
export type { SignatureVerifier, SignedItem } from './ed25519.js';
export { formatNote, formatVkey, keyId, parseNote, parseVkey, signNote, signatureLine, verifyNote } from './note.js';
export type { Note, NoteSignature, NoteVerdict, Signer, VerifierKey } from './note.js';
export { formatCheckpoint, isOrigin, parseCheckpoint, sizeOf } from './checkpoint.js';
export type { Checkpoint, Count } from './checkpoint.js';
export { emptyRoot, leafHash, nodeHash, verifyConsistency, verifyInclusion } from './merkle.js';
export { consistencyProof, inclusionProof, newNodes, treeRoot } from './prove.js';
export type { HashReader, TreeNode } from './prove.js';
export { decodeEntryBundle, encodeEntryBundle, parseTilePath, tilePath, tileWidth, TILE_WIDTH } from './tiles.js';
export type { TileAddress } from './tiles.js';
export { cosign, cosignatureMessage, verifyCosignatures } from './cosignature.js';
export type { Cosignature } from './cosignature.js';
export { hasQuorum, parsePolicy } from './policy.js';
export type { ParsedPolicy, WitnessPolicy } from './policy.js';
