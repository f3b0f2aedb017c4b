import { formatTime, fromBase64, isHex, isTime, toBase64, toHex, utf8 } from '@nd7/entry';
import type { Signer } from '@nd7/tlog';

/** What every request of a machine is signed under. */
const REQUEST_LABEL = 'nd7/request/v1\n';

/** How far a request's time may be from the vault's, in milliseconds, either way. */
export const REQUEST_WINDOW = 300_000;

/** The headers of a signed request, taken apart. */
export interface RequestSignature {
  /** As it stands: RFC 3339 in UTC with milliseconds. */
  time: string;
  /** 32 hex, used once. */
  nonce: string;
  /** 64 bytes. */
  signature: Uint8Array;
}

/** The three headers beside `authorization`. */
export interface RequestHeaders {
  'nd7-time': string;
  'nd7-nonce': string;
  'nd7-request-signature': string;
}

/**
 * The bytes that a machine signs for one request: method in capitals, path with query as sent, SHA-256 of the body as sent (of nothing, where there
 * is none) as 64 hex, time, nonce.
 */
export function requestMessage(
  method: string,
  pathWithQuery: string,
  bodySha256Hex: string,
  time: string,
  nonce: string,
): Uint8Array {
  return utf8(`${REQUEST_LABEL}${method}\n${pathWithQuery}\n${bodySha256Hex}\n${time}\n${nonce}\n`);
}

/** Signs a request. `now`: milliseconds since the epoch; `nonce`: 16 fresh random bytes. */
export async function signRequest(
  request: { method: string; pathWithQuery: string; bodySha256Hex: string; now: number; nonce: Uint8Array },
  signer: Signer,
): Promise<RequestHeaders> {
  const [time, nonce] = [formatTime(request.now), toHex(request.nonce)];
  const message = requestMessage(request.method, request.pathWithQuery, request.bodySha256Hex, time, nonce);
  return { 'nd7-time': time, 'nd7-nonce': nonce, 'nd7-request-signature': toBase64(await signer.sign(message)) };
}

/** Reads the three headers; undefined where one is missing or not of its form. Nothing is verified. */
export function parseRequestHeaders(headers: {
  time?: string | undefined;
  nonce?: string | undefined;
  signature?: string | undefined;
}): RequestSignature | undefined {
  const { time, nonce } = headers;
  const signature = headers.signature === undefined ? undefined : fromBase64(headers.signature);
  if (time === undefined || nonce === undefined || !isTime(time) || !isHex(nonce, 16) || signature?.length !== 64)
    return undefined;
  return { time, nonce, signature };
}
