// Logs made by the letter of the format, without the code under test.
import type { SignatureVerifier } from '@nd7/tlog';
import { blake3 } from '@noble/hashes/blake3.js';
import {
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  sign,
  verify as nodeVerify,
  type KeyObject,
} from 'node:crypto';
import type { Head } from './head.js';

/** The session of every log here. */
export const session = 'p-1';
const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString('hex');
export const hashOf = (bytes: Uint8Array | string) =>
  hex(blake3(typeof bytes === 'string' ? Buffer.from(bytes) : bytes));
export const genesisOf = (id: string) => hashOf(`nd7 session v1\n${id}\n`);

// Test keys are honest, so that OpenSSL alone decides as the strict rule does, many times quicker than noble.
const SPKI = Buffer.from('302a300506032b6570032100', 'hex');
const imported = new Map<string, KeyObject>();
/** Whether OpenSSL takes a signature by a key in hex. */
export function check(key: string, message: Uint8Array, signature: string): boolean {
  let object = imported.get(key);
  if (!object) {
    try {
      object = createPublicKey({ key: Buffer.concat([SPKI, Buffer.from(key, 'hex')]), format: 'der', type: 'spki' });
    } catch {
      return false;
    }
    imported.set(key, object);
  }
  return nodeVerify(null, message, object, Buffer.from(signature, 'hex'));
}
export const quick: SignatureVerifier = (items) =>
  Promise.resolve(items.map((i) => check(hex(i.key), i.message, hex(i.signature))));

const rawPublic = (key: KeyObject) =>
  createPublicKey(key.export({ format: 'pem', type: 'pkcs8' }) as string)
    .export({ format: 'der', type: 'spki' })
    .subarray(12)
    .toString('hex');
const keyRing = Array.from({ length: 8 }, () =>
  createPrivateKey(generateKeyPairSync('ed25519').privateKey.export({ format: 'pem', type: 'pkcs8' })),
);
/** The keys' public halves; the first is the machine's. */
export const publics = keyRing.map(rawPublic);
const signBy = (i: number, text: string) => sign(null, Buffer.from(text), keyRing[i] as KeyObject).toString('hex');

/** A log of `count` entries; a seal after every `every` of them, where that is not 0. */
export function makeLog(count: number, every: number): { bytes: Uint8Array; head: Head } {
  let prev = genesisOf(session);
  let key = 1;
  const lines: string[] = [];
  for (let seq = 0; seq < count; seq++) {
    let rest = `"time":"2026-11-29T19:41:00.${String(seq % 1000).padStart(3, '0')}Z","source":"intent:claude-code","kind":"tool.before","data":{"n":${String(seq)},"t":"seal é \\u0073"}}`;
    if (seq === 0 && every > 0) {
      const cert = signBy(0, `nd7-session/v1\n${session}\n${String(publics[1])}\n`);
      rest = `"source":"recorder:nd7","kind":"session.start","data":{"machine":"${String(publics[0])}","key":"${String(publics[1])}","cert":"${cert}"}}`;
    } else if (every > 0 && seq % every === 0) {
      const next = 1 + (key % 7);
      const sig = signBy(key, `nd7-seal/v1\n${session}\n${String(seq)}\n${prev}\n${String(publics[next])}\n`);
      rest = `"kind":"seal","data":{"sig":"${sig}","next":"${String(publics[next])}"},"source":"recorder:nd7"}`;
      key = next;
    }
    const line = `{"v":1,"seq":${String(seq)},"prev":"${prev}",${rest}`;
    prev = hashOf(line);
    lines.push(`${line}\n`);
  }
  return { bytes: new Uint8Array(Buffer.from(lines.join(''))), head: { entries: count, hash: prev } };
}
