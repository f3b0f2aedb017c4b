import type { ClientRequest, IncomingMessage, ServerResponse } from 'node:http';
import { request, type RequestOptions } from 'node:https';
import type { Socket } from 'node:net';
import { pipeline } from 'node:stream/promises';
import { Unreachable } from './decision.js';
import { join } from './tunnel.js';

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
  const replaced = new Set(['host', 'content-length', ...instead.map(([name]) => name.toLowerCase())]);
  const kept = endToEnd(asked).filter(([name]) => !replaced.has(name.toLowerCase()));
  return [['Host', authority], ...kept, ...instead, ...framing(asked)].flat();
}

/**
 * The one field that says where a request's body ends, as the parser has it: whatever Connection names. A body that went on without it would be
 * the next request to the server, and what comes behind that its body.
 */
function framing({ headers }: IncomingMessage): [string, string][] {
  if (headers['transfer-encoding'] !== undefined) return [['Transfer-Encoding', 'chunked']];
  const length = headers['content-length'];
  return length === undefined ? [] : [['Content-Length', length]];
}

/** Whether a request says that it has a body. */
export function hasBody(asked: IncomingMessage): boolean {
  return framing(asked).some(([, value]) => !/^0*$/.test(value));
}

/** The fields of a message that go on to its end, in their order, by pairs. */
function endToEnd({ rawHeaders, headers }: IncomingMessage): [string, string][] {
  const named = new Set((headers.connection ?? '').toLowerCase().split(/[\s,]+/));
  return pairs(rawHeaders).filter(([name]) => !HOP_BY_HOP.has(name.toLowerCase()) && !named.has(name.toLowerCase()));
}

function pairs(rawHeaders: readonly string[]): [string, string][] {
  return rawHeaders.flatMap((name, i): [string, string][] => (i % 2 === 0 ? [[name, rawHeaders[i + 1] ?? '']] : []));
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

/**
 * Sends on a request to switch protocols, and joins the two connections where the server agrees; its answer otherwise. Throws Unreachable
 * where there is none.
 */
export async function passUpgrade(
  to: RequestOptions,
  asked: IncomingMessage,
  client: Socket,
  host: string,
): Promise<void> {
  const switching = ['Connection', 'Upgrade', 'Upgrade', asked.headers.upgrade ?? ''];
  const sent = request({ ...to, headers: [...(to.headers as string[]), ...switching] });
  client.once('close', () => void sent.destroy());
  const answered = new Promise<[IncomingMessage, Socket?, Buffer?]>((resolve, reject) => {
    sent.once('response', (response) => resolve([response]));
    sent.once('upgrade', (response, socket: Socket, head) => resolve([response, socket, head]));
    sent.on('error', (error: NodeJS.ErrnoException) =>
      reject(new Unreachable('unreachable', `${host} did not answer: ${error.code ?? error.message}`)),
    );
  });
  sent.end();
  const [response, upstream, head] = await answered;
  const { statusCode = 502, statusMessage = '', rawHeaders } = response;
  const say = (fields: readonly [string, string][]): boolean => {
    const lines = fields.map(([name, value]) => `${name}: ${value}\r\n`);
    return client.write(`HTTP/1.1 ${String(statusCode)} ${statusMessage}\r\n${lines.join('')}\r\n`, 'latin1');
  };
  if (upstream === undefined) {
    say([...endToEnd(response), ['Connection', 'close']]);
    await pipeline(response, client);
    return;
  }
  say(pairs(rawHeaders));
  if (head !== undefined && head.length > 0) client.write(head);
  join(client, upstream);
}
