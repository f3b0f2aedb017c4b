import { connect, type OnReadOpts, type Socket } from 'node:net';
import { Unreachable } from './decision.js';
import { Inflow } from './inflow.js';
import type { Target } from './target.js';

/** Opens a connection to one address. `onread`: what it reads goes there, and it is no stream to be read from. */
export type Connect = (address: string, port: number, onread?: OnReadOpts) => Socket;

export const directly: Connect = (address, port, onread) =>
  connect({ host: address, port, allowHalfOpen: true, noDelay: true, ...(onread && { onread }) });

/** A connection that is open; with an inflow nothing but that reads from it. */
export interface Dialled {
  socket: Socket;
  inflow: Inflow;
}

/** How long one address may take before the next is tried besides (RFC 8305 section 5 recommends 250 ms). */
const NEXT_AFTER_MS = 250;

/** As `dial`, for what is only passed on. */
export async function dialInflow(...asked: Parameters<typeof dial>): Promise<Dialled> {
  const inflows = new WeakMap<Socket, Inflow>();
  const [target, addresses, connectTo, withinMs] = asked;
  const reading: Connect = (address, port) => {
    const inflow = new Inflow();
    const socket = connectTo(address, port, inflow.onread);
    inflows.set(socket, inflow);
    return socket;
  };
  const socket = await dial(target, addresses, reading, withinMs);
  return { socket, inflow: inflows.get(socket) as Inflow };
}

/**
 * Connects to the first address that answers: each next one is started when the last failed or took 250 ms. Throws Unreachable.
 * Only the addresses given are dialled: nothing is looked up here.
 */
export function dial(
  target: Target,
  addresses: readonly string[],
  connectTo: Connect,
  withinMs: number,
): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const open = new Set<Socket>();
    const waiting = alternate(addresses);
    let next: NodeJS.Timeout | undefined;
    let last = 'ETIMEDOUT';
    const end = (): void => {
      clearTimeout(limit);
      clearTimeout(next);
      for (const socket of open) socket.destroy();
    };
    const limit = setTimeout(() => {
      end();
      reject(notReached(target, withinMs));
    }, withinMs);
    const start = (): void => {
      clearTimeout(next);
      const address = waiting.shift();
      if (address === undefined) {
        if (open.size > 0) return;
        end();
        reject(unreachable(target, last));
        return;
      }
      const socket = connectTo(address, target.port);
      open.add(socket);
      socket.once('error', (error: NodeJS.ErrnoException) => {
        if (!open.delete(socket)) return;
        last = error.code ?? error.message;
        start();
      });
      socket.once('connect', () => {
        open.delete(socket);
        end();
        socket.removeAllListeners('error');
        resolve(socket);
      });
      next = setTimeout(start, NEXT_AFTER_MS);
    };
    start();
  });
}

export function notReached({ host, port }: Target, withinMs: number): Unreachable {
  return new Unreachable('timeout', `${host} port ${String(port)} did not answer within ${String(withinMs / 1000)} s`);
}

/** With the code of the kernel for the address that was dialled last. */
export function unreachable({ host, port }: Target, code: string): Unreachable {
  return new Unreachable(code === 'ECONNREFUSED' ? 'refused' : 'unreachable', `${host} port ${String(port)}: ${code}`);
}

/** IPv6 and IPv4 in turns, the resolver's first family first (RFC 8305 section 4). */
export function alternate(addresses: readonly string[]): string[] {
  if (addresses.length < 2) return [...addresses];
  const isV6 = (address: string): boolean => address.includes(':');
  const first = isV6(addresses[0] ?? '');
  const [one, other] = [addresses.filter((a) => isV6(a) === first), addresses.filter((a) => isV6(a) !== first)];
  return one
    .flatMap((address, i) => (other[i] === undefined ? [address] : [address, other[i]]))
    .concat(other.slice(one.length));
}
