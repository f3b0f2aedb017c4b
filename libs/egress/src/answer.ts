// What a program inside is told when it does not get what it asked for.
import type { Socket } from 'node:net';
import { Refusal, Unreachable } from './decision.js';

/** How a failure is told to a program. */
export interface Answer {
  status: number;
  reason: string;
  message: string;
}

export function answerOf(error: unknown): Answer {
  if (error instanceof Refusal) {
    const status = error.reason === 'unrecorded' ? 503 : error.reason === 'bad-request' ? 400 : 403;
    return { status, reason: error.reason, message: error.message };
  }
  if (error instanceof Unreachable)
    return { status: error.code === 'timeout' ? 504 : 502, reason: error.code, message: error.message };
  return { status: 502, reason: 'failed', message: error instanceof Error ? error.message : 'the request failed' };
}

const STATUS: Readonly<Record<number, string>> = {
  400: 'Bad Request',
  403: 'Forbidden',
  502: 'Bad Gateway',
  503: 'Service Unavailable',
  504: 'Gateway Timeout',
};
export const TOKEN_WANTED =
  'HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic realm="nd7"\r\nContent-Length: 0\r\nConnection: close\r\n\r\n';

/** The same as bytes, for a connection that no server of Node's answers any more. */
export function answerText(error: unknown): string {
  const { status, reason, message } = answerOf(error);
  const body = `nd7: ${message}\n`;
  const length = String(Buffer.byteLength(body));
  return `HTTP/1.1 ${String(status)} ${STATUS[status] ?? 'Error'}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: ${length}\r\nnd7-reason: ${reason}\r\nConnection: close\r\n\r\n${body}`;
}

/** Says the last of a connection. Who then neither reads it nor ends holds no place for long. */
export function sayLast(socket: Socket, bytes: string | Uint8Array, withinMs: number): void {
  socket.end(bytes);
  const timer = setTimeout(() => socket.destroy(), withinMs);
  socket.once('close', () => clearTimeout(timer));
}
