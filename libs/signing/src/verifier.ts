import type { SignatureVerifier } from '@nd7/tlog';
import { strictVerifier } from '@nd7/tlog';
import { toHex } from '@nd7/entry';
import type { KeyObject } from 'node:crypto';
import { createPublicKey, verify } from 'node:crypto';

/** The last keys are kept, oldest first. */
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
  // As a JWK (RFC 8037) a key is imported in 12 µs; from SPKI OpenSSL looks for a decoder first and takes 90, under a lock that threads share.
  const x = Buffer.from(key).toString('base64url');
  const made = createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x }, format: 'jwk' });
  const [oldest] = cache.keys();
  if (cache.size >= CACHED && oldest !== undefined) cache.delete(oldest);
  cache.set(hex, made);
  return made;
}
