import type { SignatureVerifier } from '@nd7/tlog';
import { strictVerifier } from '@nd7/tlog';
import { toHex } from '@nd7/entry';
import type { KeyObject } from 'node:crypto';
import { createPublicKey, verify } from 'node:crypto';

/** What stands before an Ed25519 public key's 32 bytes in SPKI (RFC 8410 section 4). */
const SPKI = Buffer.from('302a300506032b6570032100', 'hex');

/** Importing a key costs more than a verification: the last ones are kept, oldest first. */
const cache = new Map<string, KeyObject>();
const CACHED = 512;

/** Ed25519 by the strict rule of docs/receipt.md, on OpenSSL: a batch of signatures, one verdict each. */
export const verifySignatures: SignatureVerifier = strictVerifier((items) =>
  Promise.resolve(
    items.map(({ key, message, signature }) => {
      try {
        return verify(null, message, keyObject(key), signature);
      } catch {
        // OpenSSL could not import the key: then nothing is signed by it.
        return false;
      }
    }),
  ),
);

function keyObject(key: Uint8Array): KeyObject {
  const hex = toHex(key);
  const kept = cache.get(hex);
  if (kept !== undefined) return kept;
  const made = createPublicKey({ key: Buffer.concat([SPKI, key]), format: 'der', type: 'spki' });
  const [oldest] = cache.keys();
  if (cache.size >= CACHED && oldest !== undefined) cache.delete(oldest);
  cache.set(hex, made);
  return made;
}
