// Where programs that know of no proxy are heard inside: which sockets and addresses a session has for that.
import type { Listener, Route } from '@nd7/confine';
import { POOL, type AddressPool } from '@nd7/egress';
import { addressKind, parseHost, type HostRule } from '@nd7/policy';

const EVERY = '0.0.0.0';
const LOOPBACK = '127.0.0.1';
const DNS = 53;
/** Heard wherever something is let out at all, so that what is refused there is told and recorded. */
const USUAL = [80, 443];
/** Heard where a rule means it, also one that means every port. */
const SSH = 22;
/** Below it no program inside can listen: what is heard there on every address takes no port from one. */
const UNPRIVILEGED = 1024;
/** Of a rule with more ports none is heard but the usual ones. */
const MOST_PORTS = 16;
/** A launch plan has no more. */
const MOST_ROUTES = 32;

export interface TransparentWay {
  /** For names, then for connections. */
  names: Listener[];
  connections: Listener[];
  routes: Route[];
}

/** What the rules of a session's start need, with at most so many listeners for connections. Hosts with a port of their own get their address of the pool here. */
export function transparentWay(rules: readonly HostRule[], pool: AddressPool, most: number): TransparentWay {
  const allowed = rules.filter(({ allow }) => allow);
  const ports = new Set([...USUAL, ...(allowed.some(({ ports: p }) => p.from <= SSH && SSH <= p.to) ? [SSH] : [])]);
  const single = new Map<string, Listener>();
  const routes: Route[] = [{ ...POOL }];
  for (const rule of allowed) {
    const { low, high } = portsOf(rule);
    for (const port of low) ports.add(port);
    const address = addressOf(rule, pool);
    if (address === undefined) continue;
    if (address === rule.host && !routes.some((route) => route.address === address)) {
      if (routes.length === MOST_ROUTES) continue;
      routes.push({ address, prefix: 32 });
    }
    for (const port of high) single.set(`${address}:${port}`, { kind: 'stream', address, port });
  }
  const stream = { kind: 'stream', address: EVERY } as const;
  return {
    names: (['datagrams', 'stream'] as const).map((kind) => ({ kind, address: LOOPBACK, port: DNS })),
    connections: [...[...ports].map((port) => ({ ...stream, port })), ...single.values()].slice(0, most),
    routes,
  };
}

/** The address that means a rule's host, where it means one alone: an IPv4 address means itself. */
function addressOf(rule: HostRule, pool: AddressPool): string | undefined {
  if (rule.host.includes('*')) return undefined;
  const host = parseHost(rule.host);
  if ('fault' in host) return undefined;
  if (host.kind === 'name') return portsOf(rule).high.length === 0 ? undefined : pool.fixed(host.host);
  const isDialled = ['public', 'private'].includes(addressKind(host.host));
  return isDialled && !host.host.includes(':') ? host.host : undefined;
}

function portsOf({ ports: { from, to } }: HostRule): { low: number[]; high: number[] } {
  const ports = to - from < MOST_PORTS ? Array.from({ length: to - from + 1 }, (_, i) => from + i) : [];
  return { low: ports.filter((port) => port < UNPRIVILEGED), high: ports.filter((port) => port >= UNPRIVILEGED) };
}
