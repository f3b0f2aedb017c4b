// AES-256-GCM with everything a sealed text belongs to in its associated data: moved to another place, it does not open.
import { createCipheriv, createDecipheriv } from 'node:crypto';
import type { Random } from '../ports.js';

/** What a body belongs to. */
export interface BodyPlace {
  team: string;
  machine: string;
  session: string;
  from: number;
  to: number;
  head: string;
}

const VERSION = 1;
const NONCE = 12;
const TAG = 16;

/** `version 1 · nonce 12 · ciphertext · tag 16`. Nonces are random: a session key seals far fewer than 2^32 bodies. */
function seal(key: Uint8Array, plain: Uint8Array, associated: string, random: Random): Buffer {
  const nonce = random(NONCE);
  const cipher = createCipheriv('aes-256-gcm', key, nonce);
  cipher.setAAD(Buffer.from(associated, 'utf8'));
  return Buffer.concat([Buffer.of(VERSION), nonce, cipher.update(plain), cipher.final(), cipher.getAuthTag()]);
}

/** Undefined when it was not sealed by this key for this place, or was changed since. */
function open(key: Uint8Array, sealed: Uint8Array, associated: string): Buffer | undefined {
  if (sealed.length < 1 + NONCE + TAG || sealed[0] !== VERSION) return undefined;
  const cipher = createDecipheriv('aes-256-gcm', key, sealed.subarray(1, 1 + NONCE));
  cipher.setAAD(Buffer.from(associated, 'utf8'));
  cipher.setAuthTag(sealed.subarray(sealed.length - TAG));
  const plain = cipher.update(sealed.subarray(1 + NONCE, sealed.length - TAG));
  try {
    return Buffer.concat([plain, cipher.final()]);
  } catch {
    return undefined;
  }
}

const bodyText = (p: BodyPlace): string =>
  `nd7/body/v1\n${p.team}\n${p.machine}\n${p.session}\n${String(p.from)} ${String(p.to)}\n${p.head}\n`;
const keyText = (p: Pick<BodyPlace, 'team' | 'machine' | 'session'>): string =>
  `nd7/data-key/v1\n${p.team}\n${p.machine}\n${p.session}\n`;

export function sealBody(key: Uint8Array, compressed: Uint8Array, place: BodyPlace, random: Random): Buffer {
  return seal(key, compressed, bodyText(place), random);
}

export function openBody(key: Uint8Array, sealed: Uint8Array, place: BodyPlace): Buffer | undefined {
  return open(key, sealed, bodyText(place));
}

export function wrapKey(
  teamKey: Uint8Array,
  key: Uint8Array,
  place: Pick<BodyPlace, 'team' | 'machine' | 'session'>,
  random: Random,
): Buffer {
  return seal(teamKey, key, keyText(place), random);
}

export function unwrapKey(
  teamKey: Uint8Array,
  wrapped: Uint8Array,
  place: Pick<BodyPlace, 'team' | 'machine' | 'session'>,
): Buffer | undefined {
  return open(teamKey, wrapped, keyText(place));
}
