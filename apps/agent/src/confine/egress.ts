import { Server } from 'node:net';
import { findRelay, type Listener, type Opened, type Route, type Shown } from '@nd7/confine';
import {
  Egress,
  readSecret,
  SessionAuthority,
  type Asker,
  type EgressDecision,
  type EgressOptions,
  type EndedConnection,
  type Ends,
  type LostRelay,
} from '@nd7/egress';
import type { Credential, NetworkRules, Ruleset } from '@nd7/policy';
import { CliError } from '../cli/io.js';
import type { OutsidePrograms } from './outside-programs.js';
import { layRoots, type Roots } from './roots.js';
import { transparentWay } from './transparent.js';

/** On the session's own loopback, where nothing else listens at the start. */
const PROXY_PORT = 3128;
/** A launch plan has no more. */
const MAX_LISTENERS = 64;
/** Of them for ports of this machine's loopback. */
const MAX_LOOPBACK = 16;
/** What a client finds where its key would be: the real one is put on outside. */
const PLACEHOLDER = 'held-outside-by-nd7';

/** The way out of one session: which sockets it needs inside, what its programs are told of them, and who serves them. */
export interface WayOut {
  listeners: readonly Listener[];
  /** Addresses that are the session's own for programs that know of no proxy. */
  routes: readonly Route[];
  /** Whether names are answered inside. */
  resolvesNames: boolean;
  /** Files that programs inside have to see. */
  shows: readonly Shown[];
  /** Variables by which programs find the proxy, and clients the listeners that stand for their service. */
  environment: Readonly<Record<string, string>>;
  /** Takes the listeners, opened in their order. */
  serve(opened: readonly Opened[]): void;
  /** Ends the connections to what the rules no longer let through; answers how many. */
  recheck(): number;
  /** Ends all connections, and resolves when what went through them has been told. */
  finish(): Promise<void>;
  close(): void;
}

export interface WayOutInput {
  ruleset: Ruleset;
  /** nd7's own folder. */
  nd7Home: string;
  environment: NodeJS.ProcessEnv;
  /** What runs and is read outside for credentials. */
  outside: OutsidePrograms;
  /** Told of each answer before it takes effect. */
  record(decision: EgressDecision, isRepeated: boolean): Promise<void>;
  /** Told when what moves the bytes of tunnels has ended, though the session lives. */
  lost?(relay: LostRelay): void;
  /** Told when a connection to a host has ended. */
  ended?(connection: EndedConnection): void;
  /** The rules of the moment for who asks, asked for each request. Absent: those of the ruleset. */
  rules?: (asker?: Asker) => NetworkRules;
  /** Who has made a connection. Absent: nobody finds that out. */
  askerOf?(ends: Ends): Promise<Asker>;
  /**
   * Ports of listeners on this machine's own loopback, for where the session has none of its own (`listenersOf` says how many): granted ports are then
   * reached without one, and programs that know of no proxy are not.
   */
  own?: readonly number[] | undefined;
  /** How programs can be given files: in places of their own, at the places where they lie (T2), or not at all. */
  files?: 'placed' | 'in place' | 'none';
  /** With `own`: granted ports are not reached without it, since the session has a loopback of its own that somebody else has made. */
  servesLoopback?: boolean;
  /** Replaced where a test stands in for the internet. */
  internet?: Pick<EgressOptions, 'resolve' | 'at' | 'tls'>;
}

/** One socket inside, and what hears it. */
interface Served {
  at: Listener;
  serve(opened: Opened): void;
}

/**
 * The way out that a ruleset gives. The proxy listens also where nothing is let through: a host may be granted later, and what is refused is
 * told and recorded. Throws `CliError` where two credentials are meant for one host.
 */
export function wayOut(input: WayOutInput): WayOut {
  const { ruleset, record, own, rules = () => ruleset.network } = input;
  const { network } = ruleset;
  const endpoints = network.credentials
    .filter(({ way }) => way === 'endpoint')
    .map((credential, i) => ({ credential, port: own?.[i + 1] ?? PROXY_PORT + 1 + i }));
  const proxyPort = own?.[0] ?? PROXY_PORT;
  const taken = [proxyPort, ...endpoints.map(({ port }) => port)];
  // No proxy is asked for what is on the loopback: a granted port of this machine's is found where it would be outside.
  const loopback = network.loopback
    .flatMap(({ from, to }) => Array.from({ length: Math.min(to - from + 1, MAX_LISTENERS) }, (_, i) => from + i))
    .filter((port, i, ports) => ports.indexOf(port) === i && !taken.includes(port))
    .slice(0, MAX_LOOPBACK);
  const servesLoopback = own === undefined || input.servesLoopback === true;
  const relay = own === undefined ? findRelay() : undefined;
  const egress = new Egress({
    rules,
    record,
    relay,
    ...(input.lost && { lost: input.lost }),
    ...(input.ended && { ended: input.ended }),
    ...(input.askerOf && { askerOf: input.askerOf }),
    ...input.internet,
  });
  const roots = terminated(egress, input);
  const served: Served[] = [
    onLoopback(proxyPort, (proxy) => egress.serve(proxy)),
    ...endpoints.map(({ credential, port }) =>
      onLoopback(port, (listener) => egress.serveEndpoint(listener, credential, () => secretOf(credential, input))),
    ),
    ...(servesLoopback ? loopback : []).map((port) =>
      onLoopback(port, (listener) => egress.serveLoopback(listener, port)),
    ),
  ];
  const direct = (servesLoopback ? [] : loopback).map((port): Listener => ({
    kind: 'stream',
    address: '127.0.0.1',
    port,
  }));
  const way =
    own === undefined
      ? transparentWay(network.hosts, egress.pool, MAX_LISTENERS - served.length - 2)
      : { names: [], connections: [], routes: [] };
  served.push(
    ...way.names.map((at) => ({ at, serve: (opened: Opened) => egress.serveNames(opened) })),
    ...way.connections.map((at) => onStream(at, (listener) => egress.serveTransparent(listener))),
  );
  return {
    listeners: [...served.map(({ at }) => at), ...direct],
    routes: way.routes,
    resolvesNames: own === undefined,
    shows: roots?.shows ?? [],
    environment: {
      ...proxyVariables(`127.0.0.1:${proxyPort}`),
      ...roots?.environment,
      ...Object.fromEntries([
        ...endpoints.flatMap(({ credential: { endpointVariable }, port }) =>
          endpointVariable === null ? [] : [[endpointVariable, `http://127.0.0.1:${port}`]],
        ),
        ...network.credentials.flatMap(({ placeholderVariable }) =>
          placeholderVariable === null ? [] : [[placeholderVariable, PLACEHOLDER]],
        ),
      ]),
    },
    serve: (opened) => opened.forEach((socket, i) => served[i]?.serve(socket)),
    recheck: () => egress.recheck(),
    finish: () => egress.finish(),
    close: () => {
      egress.close();
      roots?.clean();
    },
  };
}

/** Read when it is first needed, while the session lives: neither a command nor a file is one that a session could have made. */
async function secretOf({ from }: Credential, { environment, outside }: WayOutInput): Promise<string> {
  if ('file' in from) outside.refuseOpenFile(from.file);
  if (!('command' in from)) return readSecret(from, environment);
  const ready = outside.ready(from.command);
  return readSecret({ command: [ready.program, ...ready.args] }, ready.environment);
}

function onLoopback(port: number, serve: (listener: Server) => void): Served {
  return onStream({ kind: 'stream', address: '127.0.0.1', port }, serve);
}

function onStream(at: Listener, serve: (listener: Server) => void): Served {
  return { at, serve: (opened) => (opened instanceof Server ? serve(opened) : undefined) };
}

/** Lets the proxy end TLS for the hosts of credentials that are put on so; what programs then have to trust, undefined where there are none. */
function terminated(egress: Egress, input: WayOutInput): Roots | undefined {
  const { ruleset, nd7Home, environment, own, files = own === undefined ? 'placed' : 'none' } = input;
  const credentials = ruleset.network.credentials.filter(({ way }) => way === 'terminate');
  const hosts = credentials.flatMap((credential) => credential.hosts);
  const [first] = credentials;
  if (first === undefined) return undefined;
  if (files === 'none')
    throw new CliError(
      2,
      `the credential "${first.name}" is put on by ending TLS, and programs in tier T3 or in another's box cannot be shown what they then have to trust`,
      'Point its client at an endpoint ("way": "endpoint"), take it out of your policy, or use tier T1 or T2.',
      'no-terminate',
    );
  const [twice] = hosts.filter((host, i) => hosts.indexOf(host) !== i);
  if (twice !== undefined)
    throw new CliError(
      2,
      `two credentials are to be put on requests to ${twice}`,
      'Take its name out of "hosts" of one of them in your policy.',
      'two-credentials',
    );
  const authority = new SessionAuthority(hosts);
  for (const credential of credentials) egress.terminate(credential, authority, () => secretOf(credential, input));
  return layRoots(nd7Home, authority.certificate, environment, files === 'placed');
}

/** How many listeners a way out needs, where they are this machine's own: the proxy's, and one for each credential with an endpoint. */
export const listenersOf = (ruleset: Ruleset): number =>
  1 + ruleset.network.credentials.filter(({ way }) => way === 'endpoint').length;

/** The names that programs look at, in both spellings; what is inside is reached without the proxy. */
export function proxyVariables(address: string): Record<string, string> {
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
