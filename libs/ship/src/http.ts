import type { Clock } from '@nd7/entry';
import { ProblemDocument } from '@nd7/vault-api';
import { messageOf } from './disk.js';
import { VaultError, isVaultError } from './error.js';

/** An answer with a status below 400. */
export interface Answer {
  status: number;
  headers: Headers;
  /** At most a megabyte. */
  text: string;
}

export interface Sending {
  url: string;
  method: string;
  headers: Record<string, string>;
  body?: Uint8Array;
  timeoutMs: number;
  signal?: AbortSignal;
  clock: Clock;
  fetch: typeof fetch;
}

/** No answer of a vault to a machine is as long. */
const MAX_ANSWER = 1 << 20;

/** One request. Throws VaultError for every answer from 300 up, `unreachable` where there is none. */
export async function send(sending: Sending): Promise<Answer> {
  // Not AbortSignal.timeout: it holds on to the request, and so to a segment of some megabytes, until the time is over, also when the answer is long there.
  const late = new AbortController();
  const timer = setTimeout(() => late.abort(new DOMException(TOO_LONG, 'TimeoutError')), sending.timeoutMs);
  try {
    return await exchange(
      sending,
      sending.signal === undefined ? late.signal : AbortSignal.any([sending.signal, late.signal]),
    );
  } finally {
    clearTimeout(timer);
  }
}

const TOO_LONG = 'The operation was aborted due to timeout';

async function exchange(
  { url, method, headers, body, clock, ...sending }: Sending,
  signal: AbortSignal,
): Promise<Answer> {
  let response: Response;
  try {
    // A redirect would show the token and the signed request to somebody else.
    response = await sending.fetch(url, {
      method,
      headers,
      redirect: 'manual',
      signal,
      ...(body && { body: new Uint8Array(body) }),
    });
  } catch (cause) {
    throw unreachable(url, cause);
  }
  if (response.status >= 200 && response.status < 300)
    return { status: response.status, headers: response.headers, text: await readText(response, url) };
  if (response.status < 400) {
    await response.body?.cancel();
    throw new VaultError(
      'bad-answer',
      response.status,
      `${url} redirects (${String(response.status)}): give the vault's own address`,
    );
  }
  throw await problemOf(response, url, clock);
}

async function problemOf(response: Response, url: string, clock: Clock): Promise<VaultError> {
  const wait = retryAfterOf(response.headers.get('retry-after'), clock);
  const later = wait === undefined ? {} : { retryAfter: wait };
  let text: string;
  try {
    text = await readText(response, url);
  } catch (error) {
    return isVaultError(error) ? error : unreachable(url, error);
  }
  const problem = ProblemDocument.safeParse(parseJson(text));
  if (!problem.success) {
    const message = `${url} answers ${String(response.status)} without saying why${response.status === 404 ? ': is it the address of a vault?' : ''}`;
    return new VaultError('bad-answer', response.status, message, later);
  }
  const { code, title, detail, next, bad_entry, reason } = problem.data;
  return new VaultError(code, response.status, `${title}: ${detail}`, {
    ...later,
    ...(next !== undefined && { next }),
    ...(bad_entry !== undefined && { bad_entry }),
    ...(reason !== undefined && { reason }),
  });
}

async function readText(response: Response, url: string): Promise<string> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  try {
    const reader = response.body?.getReader();
    for (let part = await reader?.read(); part?.done === false; part = await reader?.read()) {
      const chunk = part.value as Uint8Array;
      length += chunk.length;
      if (length > MAX_ANSWER) {
        await reader?.cancel();
        throw new VaultError(
          'bad-answer',
          response.status,
          `the answer of ${url} is longer than ${String(MAX_ANSWER)} bytes`,
        );
      }
      chunks.push(chunk);
    }
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(Buffer.concat(chunks));
  } catch (cause) {
    if (isVaultError(cause)) throw cause;
    if ((cause as { code?: unknown } | undefined)?.code === 'ERR_ENCODING_INVALID_ENCODED_DATA') {
      throw new VaultError('bad-answer', response.status, `the answer of ${url} is not UTF-8`);
    }
    throw unreachable(url, cause);
  }
}

/** Seconds or a date (RFC 9110 section 10.2.3), as milliseconds from now; at most an hour. */
function retryAfterOf(header: string | null, clock: Clock): number | undefined {
  if (header === null) return undefined;
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
  // fetch says "fetch failed" and hides the reason in its cause.
  const inner = (cause as { cause?: unknown } | undefined)?.cause;
  const why = messageOf(inner ?? cause);
  return new VaultError('unreachable', 0, `cannot reach ${new URL(url).origin}: ${why}`, {}, { cause });
}
