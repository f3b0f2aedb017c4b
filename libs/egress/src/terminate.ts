import type { Socket } from 'node:net';
import { TLSSocket } from 'node:tls';
import type { SessionAuthority } from './authority.js';
import { Refusal, type Via } from './decision.js';
import type { Endpoint } from './endpoint.js';
import type { Egress } from './proxy.js';
import type { Admitted } from './target.js';
import { awaitHello } from './tunnel.js';

/** What TLS for one host ends in. */
export interface Terminated {
  endpoint: Endpoint;
  authority: SessionAuthority;
}

/** Ends the TLS of a tunnel that was admitted: only where its hello names the host, as anywhere. HTTP/1.1 is all that is agreed to inside. */
export async function endTls(
  egress: Egress,
  via: Via,
  client: Socket,
  admitted: Admitted,
  { endpoint, authority }: Terminated,
): Promise<void> {
  try {
    client.unshift(await awaitHello(client, admitted, egress.patienceMs));
    const secureContext = authority.contextFor(admitted.target.host);
    const secure = new TLSSocket(client, { isServer: true, secureContext, ALPNProtocols: ['http/1.1'] });
    secure.on('error', () => client.destroy());
    egress.claimLike(secure, client);
    endpoint.take(secure);
  } catch (error) {
    client.destroy();
    if (error instanceof Refusal) await egress.refused(via, admitted.target, error, client);
  }
}
