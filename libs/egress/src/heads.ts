import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/**
 * Gives programs so many milliseconds for each request's head, from the moment that a connection is there or its last answer has gone: who
 * sends a byte now and then would hold a place that others need. Returns what a connection is watched with. (Node does this for servers that
 * listen themselves.)
 */
export function limitHeads(server: Server, withinMs: number): (socket: Socket) => void {
  const timers = new WeakMap<Socket, NodeJS.Timeout>();
  const stop = (socket: Socket): void => clearTimeout(timers.get(socket));
  const start = (socket: Socket): void => {
    stop(socket);
    if (!socket.destroyed)
      timers.set(
        socket,
        setTimeout(() => socket.destroy(), withinMs),
      );
  };
  server.prependListener('request', (asked: IncomingMessage, answer: ServerResponse) => {
    stop(asked.socket);
    answer.once('close', () => start(asked.socket));
  });
  for (const event of ['connect', 'upgrade'] as const)
    server.prependListener(event, (asked: IncomingMessage) => stop(asked.socket));
  return (socket) => {
    start(socket);
    socket.once('close', () => stop(socket));
  };
}
