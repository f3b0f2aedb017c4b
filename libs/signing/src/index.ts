/**
 * Node's side of keys: Ed25519 key pairs in files, the strict verifier on OpenSSL, the system's clock and randomness.
 *
 * It promises: a key file is 0600, whole on the disk before the key is used, never written over, refused when anybody else could read it,
 * and overwritten before it is unlinked; a signature is good only by the strict rule of docs/receipt.md. It does not hide a key in memory
 * from this process, nor from root. Called by the agent, the vault and the tests; core libs get a `Signer` or a verifier from their caller.
 */
export { verifySignatures } from './verifier.js';
export { generateKeyPair, parsePem } from './key-pair.js';
export type { KeyPair } from './key-pair.js';
export { createKeyFile, destroyKeyFile, loadKeyFile } from './key-file.js';
export { SigningError } from './error.js';
export type { SigningCode } from './error.js';
export { sha256, sha256Hex, systemClock, systemRandom } from './system.js';
