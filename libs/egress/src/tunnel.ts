import type { Socket } from 'node:net';
import { parseHost } from '@nd7/policy';
import { MAX_HELLO, readClientHello } from './client-hello.js';
import { Refusal } from './decision.js';
import type { Inflow } from './inflow.js';
import { shown, type Admitted } from './target.js';

/**
 * Reads the first bytes of a tunnel until they are a ClientHello for the very host that was admitted. Returns the bytes, of which nothing
 * has gone out yet; throws a Refusal for everything else. Where the host is an address, no name can be in the hello (RFC 6066 section 3).
 */
export async function awaitHello(
  client: Socket,
  { target, source, addresses }: Admitted,
  withinMs: number,
): Promise<Buffer> {
  let bytes = Buffer.alloc(0);
  const deadline = Date.now() + withinMs;
  for (;;) {
    const needed = neededHello(bytes, { target, source, addresses });
    if (needed === 0) return bytes;
    const more = bytes.length < MAX_HELLO ? await nextBytes(client, deadline - Date.now()) : undefined;
    if (more === undefined)
      throw new Refusal('no-hello', `the tunnel to ${target.host} did not say what it is in time`, source, addresses);
    bytes = Buffer.concat([bytes, more]);
  }
}

/**
 * How many bytes of a tunnel are needed to tell whether it begins with a hello for its host; 0 where it does. Throws a Refusal where it does
 * not.
 */
export function neededHello(bytes: Uint8Array, { target, source, addresses }: Omit<Admitted, 'raw'>): number {
  const hello = readClientHello(bytes);
  if ('name' in hello) {
    const named = parseHost(hello.name);
    if (target.kind === 'ip' || (!('fault' in named) && named.host === target.host)) return 0;
    throw new Refusal('other-name', `the tunnel to ${target.host} asks for "${shown(hello.name)}"`, source, addresses);
  }
  if ('needs' in hello) return hello.needs;
  if (hello.fault === 'no-name' && target.kind === 'ip') return 0;
  throw new Refusal(
    hello.fault,
    `the tunnel to ${target.host} does not begin with a TLS hello for it (${hello.fault})`,
    source,
    addresses,
  );
}

/** The next bytes a socket has; undefined at its end, on an error, or when the time is over. */
export function nextBytes(socket: Socket, withinMs: number): Promise<Buffer | undefined> {
  return new Promise((resolve) => {
    const done = (bytes?: Buffer): void => {
      clearTimeout(timer);
      socket.off('readable', look).off('end', over).off('close', over).off('error', over);
      resolve(bytes);
    };
    const over = (): void => done();
    const look = (): void => {
      const bytes = socket.read() as Buffer | null;
      if (bytes !== null) done(bytes);
    };
    const timer = setTimeout(over, Math.max(0, withinMs));
    if (socket.readableEnded || socket.destroyed) return done();
    socket.on('readable', look).on('end', over).on('close', over).on('error', over);
    look();
  });
}

/**
 * Joins two sockets until both ends have said all they had to say: a half-closed side is passed on as such. With an inflow that is what
 * upstream's bytes come by.
 */
export function join(client: Socket, upstream: Socket, inflow?: Inflow): void {
  const cut = (): void => {
    client.destroy();
    upstream.destroy();
  };
  for (const from of [client, upstream]) {
    from.on('error', cut);
    from.once('close', () => {
      if (!from.readableEnded) cut();
    });
  }
  client.pipe(upstream);
  if (inflow === undefined) upstream.pipe(client);
  else inflow.join(upstream, client);
}
