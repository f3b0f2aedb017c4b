import { Point } from '@noble/ed25519';
import { sha512 } from '@noble/hashes/sha2.js';
import { toHex } from '@nd7/entry';
import { concat, equal } from './bytes.js';
import { jacobi } from './quadratic.js';

/** One signature to check: a 32-byte public key, the signed bytes, a 64-byte signature. */
export interface SignedItem {
  key: Uint8Array;
  message: Uint8Array;
  signature: Uint8Array;
}

/** Checks a batch; the answer has one verdict for each item, in their order. Never rejects because of what an item holds. */
export type SignatureVerifier = (items: readonly SignedItem[]) => Promise<boolean[]>;

const P = 2n ** 255n - 19n;
const L = 2n ** 252n + 27742317777372353535851937790883648493n;
/** The curve's constant, -121665/121666. */
const D = 37095705934669439343138083508754565189542113879843219016388785533085940283555n;

/*
 * The y coordinates of the eight points of small order: the identity (1), order two (-1), order four (0, twice) and
 * order eight (two values, twice each). An encoding whose y, without the sign bit, is one of them is a small-order point,
 * or (y = 1 or -1 with the sign bit) no point at all: both are refused. Little-endian.
 */
const SMALL_ORDER_Y: readonly Uint8Array[] = [
  0n,
  1n,
  P - 1n,
  0x05fc536d880238b13933c6d305acdfd5f098eff289f4c345b027b2c28f95e826n,
  0x7a03ac9277fdc74ec6cc392cfa53202a0f67100d760b3cba4fd84d3d706a17c7n,
].map(littleEndian);

const L_BYTES = littleEndian(L);
const MAX_Y = 2n ** 255n - 1n;

/**
 * Whether `key` is a public key that the rule accepts: it decodes canonically (RFC 8032 section 5.1.3) to a point on the curve
 * and has no small order. A key of another length is none.
 */
export function isStrictKey(key: Uint8Array): boolean {
  return isStrictEncoding(key) && isOnCurve(key);
}

/**
 * Whether a point has this y, of an encoding that is strict: whether x² = (y² - 1) / (d·y² + 1) is a square, which it is where the product of the two is.
 * Neither is 0: y is not ±1, and -1/d is no square. Every seal names a key that is asked about, so that it is not decoded with a power for each.
 */
function isOnCurve(bytes: Uint8Array): boolean {
  const y = fromLittleEndian(bytes) & MAX_Y;
  const square = (y * y) % P;
  return jacobi(((square - 1n) * ((D * square + 1n) % P)) % P, P) === 1;
}

/**
 * Makes a verifier strict that decides S·B = R + k·A without cofactor (OpenSSL, BoringSSL: node:crypto and WebCrypto), by the checks
 * those two leave out: A and R canonical, neither of small order, S < L. Only what passes them reaches `raw`.
 */
export function strictVerifier(raw: SignatureVerifier): SignatureVerifier {
  return async (items) => {
    const verdicts = new Array<boolean>(items.length).fill(false);
    const kept: SignedItem[] = [];
    const places: number[] = [];
    items.forEach((item, place) => {
      if (!passesPreChecks(item)) return;
      kept.push(item);
      places.push(place);
    });
    if (kept.length === 0) return verdicts;
    const raws = await raw(kept);
    places.forEach((place, i) => (verdicts[place] = raws[i] === true));
    return verdicts;
  };
}

/**
 * The whole rule in plain JavaScript on noble's points: the fall-back where no WebCrypto knows Ed25519, and the cross-check of the other
 * two. About fifteen times slower than node:crypto.
 */
export const nobleVerifier: SignatureVerifier = (items) => Promise.resolve(items.map(verifiesNow));

/** The same of one signature, at once: for who cannot wait. */
export function verifiesNow(item: SignedItem): boolean {
  if (!passesPreChecks(item)) return false;
  const key = decode(item.key);
  if (key === undefined) return false;
  const r = item.signature.subarray(0, 32);
  const k = fromLittleEndian(sha512(concat(r, item.key, item.message))) % L;
  const s = fromLittleEndian(item.signature.subarray(32));
  // Equality of the encodings, not of points times eight: the cofactorless equation, and with it that R is canonical.
  return equal(Point.BASE.multiply(s, false).add(key.negate().multiply(k, false)).toBytes(), r);
}

function passesPreChecks({ key, signature }: SignedItem): boolean {
  return (
    signature.length === 64 &&
    isStrictEncoding(key) &&
    isStrictEncoding(signature.subarray(0, 32)) &&
    isBelowL(signature)
  );
}

/** S < L, of the 64 bytes of a signature. */
function isBelowL(signature: Uint8Array): boolean {
  for (let i = 31; i >= 0; i--) {
    const difference = (signature[32 + i] ?? 0) - (L_BYTES[i] ?? 0);
    if (difference !== 0) return difference < 0;
  }
  return false;
}

/** 32 bytes whose y is below p and not that of a small-order point; whether a point has that y is not looked at. */
function isStrictEncoding(bytes: Uint8Array): boolean {
  if (bytes.length !== 32 || isAboveP(bytes)) return false;
  return !SMALL_ORDER_Y.some((y) => {
    for (let i = 0; i < 31; i++) if (y[i] !== bytes[i]) return false;
    return y[31] === ((bytes[31] ?? 0) & 0x7f);
  });
}

/** y >= p = 2^255 - 19: one of the 19 values ed ff … ff 7f and above, the sign bit left out. */
function isAboveP(bytes: Uint8Array): boolean {
  if (((bytes[31] ?? 0) & 0x7f) !== 0x7f) return false;
  for (let i = 30; i > 0; i--) if (bytes[i] !== 0xff) return false;
  return (bytes[0] ?? 0) >= 0xed;
}

function decode(bytes: Uint8Array): Point | undefined {
  try {
    return Point.fromBytes(bytes, false);
  } catch {
    return undefined;
  }
}

function littleEndian(value: bigint): Uint8Array {
  return Uint8Array.from({ length: 32 }, (_, i) => Number((value >> BigInt(8 * i)) & 255n));
}

function fromLittleEndian(bytes: Uint8Array): bigint {
  return BigInt(`0x${toHex(Uint8Array.from(bytes).reverse())}`);
}
