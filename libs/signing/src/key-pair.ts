import { toHex } from '@nd7/entry';
import type { KeyObject } from 'node:crypto';
import { createPrivateKey, createPublicKey, generateKeyPairSync, sign } from 'node:crypto';

/** An Ed25519 key pair that signs. The private key stays inside. */
export interface KeyPair {
  /** 64 hex. */
  readonly publicKey: string;
  /** The 64 bytes of the signature over exactly these bytes. */
  sign(message: Uint8Array): Uint8Array;
}

/** A fresh key pair that also gives its private key away, as a PKCS#8 PEM text, to be stored. */
export function generateKeyPair(): KeyPair & { pem(): string } {
  const { privateKey } = generateKeyPairSync('ed25519');
  return { ...keyPairOf(privateKey), pem: () => privateKey.export({ type: 'pkcs8', format: 'pem' }).toString() };
}

/** The key pair in a PKCS#8 PEM text; undefined where there is no Ed25519 private key in it. */
export function parsePem(pem: string): KeyPair | undefined {
  let key: KeyObject;
  try {
    key = createPrivateKey({ key: pem, format: 'pem' });
  } catch {
    return undefined;
  }
  return key.asymmetricKeyType === 'ed25519' ? keyPairOf(key) : undefined;
}

function keyPairOf(privateKey: KeyObject): KeyPair {
  // The last 32 bytes of an Ed25519 SPKI are the key (RFC 8410 section 4).
  const spki = createPublicKey(privateKey).export({ type: 'spki', format: 'der' });
  return {
    publicKey: toHex(spki.subarray(-32)),
    sign: (message) => new Uint8Array(sign(null, message, privateKey)),
  };
}
