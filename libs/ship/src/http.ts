import http, { type IncomingHttpHeaders } from 'node:http';
import https from 'node:https';
import type { Clock } from '@nd7/entry';
import { ProblemDocument } from '@nd7/vault-api';
import { messageOf } from './disk.js';
import { VaultError, isVaultError } from './error.js';

/** An answer with a status below 300. */
export interface Answer {
  status: number;
  location: string | undefined;
  /** At most a megabyte. */
  text: string;
}

export interface Sending {
  url: string;
  method: string;
  headers: Record<string, string>;
  /** Sent from where it lies: it must not change until there is an answer. */
  body?: Uint8Array;
  timeoutMs: number;
  signal?: AbortSignal;
  clock: Clock;
}

/** No answer of a vault to a machine is as long. */
const MAX_ANSWER = 1 << 20;

/** How long a connection is kept for the next request, in milliseconds, unless the vault closes it earlier. */
const KEPT = 4_000;
const agents = {
  'http:': new http.Agent({ keepAlive: true, timeout: KEPT }),
  'https:': new https.Agent({ keepAlive: true, timeout: KEPT }),
};

/**
 * One request. Throws VaultError for every answer from 300 up, `unreachable` where there is none.
 *
 * By node:http and not by fetch, which copies a body three times on its way and brings the collector to go through all memory for every few segments: a
 * segment cost three times the processor time.
 */
export async function send(sending: Sending): Promise<Answer> {
  const { url, clock } = sending;
  const { status, headers, text } = await exchange(sending);
  if (status >= 200 && status < 300) return { status, location: headers.location, text: text() };
  // A redirect is not followed: it would show the token and the signed request to somebody else.
  if (status < 400)
    throw new VaultError('bad-answer', status, `${url} redirects (${String(status)}): give the vault's own address`);
  throw problemOf(status, headers, text(), url, clock);
}

const TOO_LONG = 'The operation was aborted due to timeout';

interface Exchanged {
  status: number;
  headers: IncomingHttpHeaders;
  /** Throws VaultError where the bytes are no UTF-8. */
  text: () => string;
}

/** Sends, and takes the whole answer. Throws VaultError. */
function exchange({ url, method, headers, body, timeoutMs, signal }: Sending): Promise<Exchanged> {
  return new Promise((resolve, reject) => {
    const { protocol } = new URL(url);
    const by = protocol === 'http:' ? http : https;
    const request = by.request(url, {
      method,
      agent: agents[protocol as keyof typeof agents],
      headers: { ...headers, ...((body !== undefined || method !== 'GET') && { 'content-length': body?.length ?? 0 }) },
      ...(signal && { signal }),
    });
    const fail = (error: Error): void => {
      clearTimeout(timer);
      reject(isVaultError(error) ? error : unreachable(url, error));
      request.destroy();
    };
    const timer = setTimeout(() => fail(new Error(TOO_LONG)), timeoutMs);
    request.on('error', fail);
    request.on('response', (response) => {
      const status = response.statusCode as number;
      const chunks: Buffer[] = [];
      let length = 0;
      response.on('data', (chunk: Buffer) => {
        length += chunk.length;
        if (length <= MAX_ANSWER) chunks.push(chunk);
        else {
          const why = `the answer of ${url} is longer than ${String(MAX_ANSWER)} bytes`;
          fail(new VaultError('bad-answer', status, why));
        }
      });
      response.on('error', fail);
      response.on('end', () => {
        clearTimeout(timer);
        resolve({ status, headers: response.headers, text: () => decoded(Buffer.concat(chunks), status, url) });
      });
    });
    request.end(body);
  });
}

function decoded(bytes: Uint8Array, status: number, url: string): string {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw new VaultError('bad-answer', status, `the answer of ${url} is not UTF-8`);
  }
}

function problemOf(status: number, headers: IncomingHttpHeaders, text: string, url: string, clock: Clock): VaultError {
  const wait = retryAfterOf(headers['retry-after'], clock);
  const later = wait === undefined ? {} : { retryAfter: wait };
  const problem = ProblemDocument.safeParse(parseJson(text));
  if (!problem.success) {
    const message = `${url} answers ${String(status)} without saying why${status === 404 ? ': is it the address of a vault?' : ''}`;
    return new VaultError('bad-answer', status, message, later);
  }
  const { code, title, detail, next, bad_entry, reason } = problem.data;
  return new VaultError(code, status, `${title}: ${detail}`, {
    ...later,
    ...(next !== undefined && { next }),
    ...(bad_entry !== undefined && { bad_entry }),
    ...(reason !== undefined && { reason }),
  });
}

/** Seconds or a date (RFC 9110 section 10.2.3), as milliseconds from now; at most an hour. */
function retryAfterOf(header: string | undefined, clock: Clock): number | undefined {
  if (header === undefined) return undefined;
  const ms = /^[0-9]{1,9}$/.test(header) ? Number(header) * 1000 : Date.parse(header) - clock.now();
  return Number.isFinite(ms) ? Math.min(Math.max(ms, 0), 3_600_000) : undefined;
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function unreachable(url: string, cause: unknown): VaultError {
  // Where a name has several addresses, each has an error of its own, and what holds them says nothing.
  const why = messageOf(cause instanceof AggregateError ? (cause.errors[0] ?? cause) : cause);
  return new VaultError('unreachable', 0, `cannot reach ${new URL(url).origin}: ${why}`, {}, { cause });
}
