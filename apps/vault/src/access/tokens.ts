// Secrets that are shown once and kept as SHA-256 only.
import { sha256Hex } from '@nd7/signing';
import type { Random } from '../ports.js';

/** 32 random bytes in base64url, 43 characters. */
export function newSecret(random: Random): string {
  return Buffer.from(random(32)).toString('base64url');
}

export function newMachineToken(random: Random): string {
  return `nd7m1_${newSecret(random)}`;
}

export function newReaderToken(random: Random): string {
  return `nd7r1_${newSecret(random)}`;
}

/** What the database keeps of a secret or token. It has 256 bits of its own: a plain hash tells nothing. */
export function tokenHash(token: string): string {
  return sha256Hex(Buffer.from(token, 'utf8'));
}

/** The opaque id of a person or an incident. */
export function newId(prefix: 'u' | 'i', random: Random): string {
  return `${prefix}_${Buffer.from(random(16)).toString('hex')}`;
}

/** The bearer token of a request, if it has one of these forms. */
export function bearerToken(
  authorization: string | undefined,
): { kind: 'machine' | 'reader'; token: string } | undefined {
  const [, token, letter] = /^bearer +(nd7([mr])1_[A-Za-z0-9_-]{43})$/i.exec(authorization ?? '') ?? [];
  return token === undefined ? undefined : { kind: letter === 'm' ? 'machine' : 'reader', token };
}

export const COOKIE = 'nd7_session';

/** The cookie's secret, if there is one of its form. */
export function cookieSecret(header: string | undefined): string | undefined {
  return /(?:^|;\s*)nd7_session=([A-Za-z0-9_-]{43})(?:;|$)/.exec(header ?? '')?.[1];
}
