import type { ClientRequest, IncomingMessage, ServerResponse } from 'node:http';
import { pipeline } from 'node:stream/promises';
import { Unreachable } from './decision.js';

/** Fields that speak of one connection (RFC 9110 section 7.6.1), and what is said to a proxy only. */
const HOP_BY_HOP = new Set([
  'connection',
  'expect',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authentication-info',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]);

/** The fields of a request as they go on to `authority`, without those named in `instead`, which are put on in their place. */
export function requestFields(
  asked: IncomingMessage,
  authority: string,
  instead: readonly [string, string][] = [],
): string[] {
  const replaced = new Set(['host', ...instead.map(([name]) => name.toLowerCase())]);
  const kept = endToEnd(asked).filter(([name]) => !replaced.has(name.toLowerCase()));
  const hasChunks = asked.headers['transfer-encoding'] !== undefined;
  const body: [string, string][] = hasChunks ? [['Transfer-Encoding', 'chunked']] : [];
  return [['Host', authority], ...kept, ...instead, ...body].flat();
}

/** The fields of a message that go on to its end, in their order, by pairs. */
function endToEnd({ rawHeaders, headers }: IncomingMessage): [string, string][] {
  const named = new Set((headers.connection ?? '').toLowerCase().split(/[\s,]+/));
  const pairs = rawHeaders.flatMap((name, i): [string, string][] =>
    i % 2 === 0 ? [[name, rawHeaders[i + 1] ?? '']] : [],
  );
  return pairs.filter(([name]) => !HOP_BY_HOP.has(name.toLowerCase()) && !named.has(name.toLowerCase()));
}

/**
 * Sends on what was asked and passes the answer back as it comes; returns its status. Throws Unreachable before the answer has begun;
 * later failures cut the answer, so that nobody takes a part for the whole.
 */
export async function exchange(
  asked: IncomingMessage,
  answer: ServerResponse,
  sent: ClientRequest,
  host: string,
): Promise<number> {
  answer.once('close', () => void sent.destroy());
  const answered = new Promise<IncomingMessage>((resolve, reject) => {
    sent.once('response', resolve).on('error', reject);
    sent.once('upgrade', (_response, socket) => {
      socket.destroy();
      reject(new Unreachable('refused', `${host} switched protocols unasked`));
    });
  });
  // A server may answer and close before it has read everything.
  pipeline(asked, sent).catch(() => undefined);
  const response = await answered.catch((error: NodeJS.ErrnoException) => {
    throw error instanceof Unreachable
      ? error
      : new Unreachable('unreachable', `${host} did not answer: ${error.code ?? error.message}`);
  });
  const status = response.statusCode ?? 502;
  answer.writeHead(status, response.statusMessage ?? '', endToEnd(response).flat());
  await pipeline(response, answer);
  return status;
}
