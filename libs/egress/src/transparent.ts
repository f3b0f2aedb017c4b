import type { Socket } from 'node:net';
import { parseHost } from '@nd7/policy';
import type { HttpFront } from './http.js';
import type { Egress } from './proxy.js';
import { readHost, type Target } from './target.js';
import { nextBytes } from './tunnel.js';

/** First byte of TLS. */
export const HANDSHAKE = 22;

/**
 * Takes a connection that a program inside has made to an address instead of asking the proxy: the address says which name is meant, and
 * what holds for a tunnel to it holds here. Where the rule is not raw, TLS has to name that host, and plain HTTP has to ask for it.
 */
export async function takeTransparent(egress: Egress, http: HttpFront, socket: Socket): Promise<void> {
  const { localAddress, localPort } = socket;
  const target =
    localAddress === undefined || localPort === undefined
      ? undefined
      : transparentTarget(egress, localAddress, localPort);
  // Nothing is meant by it: as where nothing listens.
  if (target === undefined) return void socket.resetAndDestroy();
  if (target.kind === 'name') socket.once('close', egress.pool.hold(target.host));
  const { allow, raw } = await egress.decide(target, socket);
  if (allow && !raw) {
    const first = await nextBytes(socket, egress.patienceMs);
    if (first === undefined) return void socket.destroy();
    socket.unshift(first);
    if (first[0] !== HANDSHAKE) return http.take(socket, target);
  }
  try {
    await egress.tunnel('transparent', socket, target, () => undefined);
  } catch {
    // It has been accepted already: all that is left to say is that it is over.
    socket.resetAndDestroy();
  }
}

/** What a connection to an address inside means. Of addresses outside the pool those mean themselves that the session has a route for, since the policy lists them. */
export function transparentTarget(egress: Egress, at: string, port: number): Target | undefined {
  const name = egress.pool.nameOf(at);
  if (name !== undefined) return readHost(name, port);
  const address = parseHost(at);
  if ('fault' in address || address.kind !== 'ip' || !egress.isNamed(address)) return undefined;
  return { ...address, port };
}
