import type { Server } from 'node:net';
import { Egress, readSecret, type EgressDecision } from '@nd7/egress';
import type { Credential, NetworkRules, Ruleset } from '@nd7/policy';
import { CliError } from '../cli/io.js';

/** On the session's own loopback, where nothing else listens at the start. */
const PROXY_PORT = 3128;
/** A launch plan has no more. */
const MAX_LISTENERS = 16;
/** What a client finds where its key would be: the real one is put on outside. */
const PLACEHOLDER = 'held-outside-by-nd7';

/** The way out of one session: which listeners it needs inside, what its programs are told of them, and who serves them. */
export interface WayOut {
  ports: readonly number[];
  /** Variables by which programs find the proxy, and clients the listeners that stand for their service. */
  environment: Readonly<Record<string, string>>;
  serve(listeners: ReadonlyMap<number, Server>): void;
  /** Ends the connections to what the rules no longer let through; answers how many. */
  recheck(): number;
  close(): void;
}

/**
 * The way out that a ruleset gives. The proxy listens also where nothing is let through: a host may be granted later, and what is refused is
 * told and recorded. `rules` are those of the moment, asked for each request; every answer is handed to `record` before it takes effect.
 * Throws `CliError` for what cannot be held outside yet.
 */
export function wayOut(
  ruleset: Ruleset,
  environment: NodeJS.ProcessEnv,
  record: (decision: EgressDecision) => Promise<void>,
  rules: () => NetworkRules = () => ruleset.network,
): WayOut {
  const { network } = ruleset;
  const endpoints = network.credentials.map((credential, i) => ({
    credential: held(credential),
    port: PROXY_PORT + 1 + i,
  }));
  const taken = [PROXY_PORT, ...endpoints.map(({ port }) => port)];
  // No proxy is asked for what is on the loopback: a granted port of this machine's is found where it would be outside.
  const loopback = network.loopback
    .flatMap(({ from, to }) => Array.from({ length: Math.min(to - from + 1, MAX_LISTENERS) }, (_, i) => from + i))
    .filter((port, i, ports) => ports.indexOf(port) === i && !taken.includes(port))
    .slice(0, MAX_LISTENERS - taken.length);
  const egress = new Egress({ rules, record });
  return {
    ports: [PROXY_PORT, ...endpoints.map(({ port }) => port), ...loopback],
    environment: {
      ...proxyVariables(`127.0.0.1:${PROXY_PORT}`),
      ...Object.fromEntries(
        endpoints.flatMap(({ credential, port }) => [
          ...(credential.endpointVariable === null ? [] : [[credential.endpointVariable, `http://127.0.0.1:${port}`]]),
          ...(credential.placeholderVariable === null ? [] : [[credential.placeholderVariable, PLACEHOLDER]]),
        ]),
      ),
    },
    serve: (listeners) => {
      const proxy = listeners.get(PROXY_PORT);
      if (proxy !== undefined) egress.serve(proxy);
      for (const { credential, port } of endpoints) {
        const listener = listeners.get(port);
        if (listener !== undefined)
          egress.serveEndpoint(listener, credential, () => readSecret(credential.from, environment));
      }
      for (const port of loopback) {
        const listener = listeners.get(port);
        if (listener !== undefined) egress.serveLoopback(listener, port);
      }
    },
    recheck: () => egress.recheck(),
    close: () => egress.close(),
  };
}

function held(credential: Credential): Credential {
  if (credential.way === 'endpoint') return credential;
  throw new CliError(
    2,
    `the credential "${credential.name}" wants TLS ended by the proxy, and that is not there yet`,
    'Let its client be pointed at an endpoint, or take it out of your policy.',
    'no-terminate',
  );
}

/** The names that programs look at, in both spellings; what is inside is reached without the proxy. */
function proxyVariables(address: string): Record<string, string> {
  const [http, own] = [`http://${address}`, 'localhost,127.0.0.1,::1'];
  // ALL_PROXY is no socks5h:// address, though the proxy speaks that too: Python's httpx ends with an error where it lacks a package for it.
  const values: Record<string, string> = { HTTP_PROXY: http, HTTPS_PROXY: http, ALL_PROXY: http, NO_PROXY: own };
  const both = Object.entries(values).flatMap(([name, value]) => [
    [name, value],
    [name.toLowerCase(), value],
  ]);
  // Node from 22.21 on takes the proxy from these variables when it is told to.
  return { ...(Object.fromEntries(both) as Record<string, string>), NODE_USE_ENV_PROXY: '1' };
}
