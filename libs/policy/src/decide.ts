import type { Host } from './host.js';
import { hostMatches, hostSpecificity } from './host.js';
import { addressKind } from './address.js';
import type { AddressKind } from './address.js';
import { maskedPrefix } from './names.js';
import { isWithin, prefixesOf } from './path.js';
import type { Access, FileNode, HostBound, HostRule, Mask, NetworkRules, Ruleset } from './ruleset.js';

/** What is known of the disk by who asks. */
export interface Facts {
  /** Whether git tracks the file. Absent: nothing is tracked, which masks more. */
  tracked?: (path: string) => boolean;
  /** Whether a folder is a git directory. Absent: by its name. */
  isGitDir?: (folder: string) => boolean;
  /**
   * Folders that a session has afresh in a tier with a mount view, where the rules make its temporary folder its own; without a view they are
   * closed. Absent: none but that folder.
   */
  ownFolders?: readonly string[];
}

/** The node that decides about a path: that of the longest path above it. `path` is absolute and normal. */
export function nodeAt(ruleset: Ruleset, path: string): FileNode {
  return nearestNode(ruleset.files, path);
}

/** Index by path, made once for a list of nodes. */
const INDEX = new WeakMap<readonly FileNode[], Map<string, FileNode>>();

export function nearestNode(all: readonly FileNode[], path: string): FileNode {
  const nodes = INDEX.get(all) ?? new Map(all.map((node) => [node.path, node]));
  INDEX.set(all, nodes);
  const prefixes = prefixesOf(path).reverse();
  const node = nodes.get(prefixes.find((prefix) => nodes.has(prefix)) ?? '');
  if (node === undefined) throw new RangeError(`a ruleset without a node for /: ${path}`);
  return node;
}

/** The mask that hides a path, or undefined. */
export function maskAt(ruleset: Ruleset, path: string, facts: Facts = {}): Mask | undefined {
  return ruleset.masks.find((mask) => maskedPrefix(mask, path, facts.tracked) !== undefined);
}

/** What may be done with a path, protected names apart (`leafAt` says those). */
export function accessAt(ruleset: Ruleset, path: string, facts: Facts = {}): Access {
  if (maskAt(ruleset, path, facts) !== undefined) return { read: false, write: false, exec: false };
  return nodeAt(ruleset, path).access;
}

export interface HostDecision {
  allow: boolean;
  /** The rule that decided; null where none matches. */
  rule: HostRule | null;
  /** Who refused what the rules allow; null where nobody did. */
  bound: HostBound | null;
  /** As the rule says; false where the host is refused. */
  raw: boolean;
  privateAddresses: boolean;
}

/** Whether a host and port may be reached through the proxy. The host has been parsed by `parseHost`; nothing else is compared. */
export function decideHost(network: Pick<NetworkRules, 'hosts' | 'bounds'>, host: Host, port: number): HostDecision {
  const rule = nearestRule(network.hosts, host, port);
  if (rule?.allow !== true) return { allow: false, rule, bound: null, raw: false, privateAddresses: false };
  let { raw, privateAddresses } = rule;
  for (const bound of network.bounds) {
    const second = nearestRule(bound.rules, host, port);
    if (!(second?.allow ?? bound.otherwise === 'allow'))
      return { allow: false, rule: second, bound, raw: false, privateAddresses: false };
    // A ceiling or a narrowing policy that names the host says how, too: what it does not have, nobody has.
    if (second !== null) {
      raw &&= second.raw;
      privateAddresses &&= second.privateAddresses;
    }
  }
  return { allow: true, rule, bound: null, raw, privateAddresses };
}

/**
 * Whether a host may be reached on any port at all: the decision on the first one, else that on 443. A name is answered for by this, since
 * who asks for one has not said a port.
 */
export function decideName(network: Pick<NetworkRules, 'hosts' | 'bounds'>, host: Host): HostDecision {
  // What rules say changes at their edges only.
  const rules = [...network.hosts, ...network.bounds.flatMap((bound) => bound.rules)];
  const edges = rules
    .filter((rule) => hostMatches(rule.host, host) || rule.host === '*')
    .flatMap(({ ports: { from, to } }) => [from, to + 1])
    .filter((port) => port <= 65_535);
  const decisions = [443, ...edges].map((port) => decideHost(network, host, port));
  return decisions.find(({ allow }) => allow) ?? (decisions[0] as HostDecision);
}

/** The most specific rule that means this host and port: the narrower host, then the fewer ports, then the denial. Null for none. */
function nearestRule(rules: readonly HostRule[], host: Host, port: number): HostRule | null {
  let best: HostRule | null = null;
  for (const rule of rules) {
    if (port < rule.ports.from || port > rule.ports.to) continue;
    if (!hostMatches(rule.host, host) && !(rule.host === '*' && !rule.allow)) continue;
    if (best === null || moreSpecific(rule, best)) best = rule;
  }
  return best;
}

function moreSpecific(a: HostRule, b: HostRule): boolean {
  const hosts = hostSpecificity(a.host) - hostSpecificity(b.host);
  if (hosts !== 0) return hosts > 0;
  const ports = a.ports.to - a.ports.from - (b.ports.to - b.ports.from);
  if (ports !== 0) return ports < 0;
  if (a.allow !== b.allow) return !a.allow;
  // Ports that overlap, equally many, both allowed or both denied: the stricter manner, then the lower ports.
  if (a.raw !== b.raw) return !a.raw;
  if (a.privateAddresses !== b.privateAddresses) return !a.privateAddresses;
  return a.ports.from < b.ports.from;
}

/**
 * Whether an address may be dialled for a host that may be reached: what a name resolved to, or the address that was asked for. In
 * canonical spelling. Loopback, link-local, metadata, multicast and reserved addresses never; private ones where the rule says so or the
 * address itself is listed.
 */
export function mayDial(address: string, host: Host, decision: HostDecision): { allow: boolean; kind: AddressKind } {
  const kind = addressKind(address);
  const named = host.kind === 'ip' && host.host === address;
  return {
    kind,
    allow: decision.allow && (kind === 'public' || (kind === 'private' && (named || decision.privateAddresses))),
  };
}

const LOOPBACK: ReadonlyMap<string, readonly string[]> = new Map([
  ['localhost', ['127.0.0.1', '::1']],
  ['127.0.0.1', ['127.0.0.1']],
  ['::1', ['::1']],
]);

/** The addresses of this machine's own loopback that a host means; undefined where it means another machine. Of these no host rule decides but `portRule`. */
export function loopbackAddresses(host: string): readonly string[] | undefined {
  return LOOPBACK.get(host);
}

/** Whether a server inside may be reached on a port, or a service of this machine's loopback be connected to; the rule, or undefined. */
export function portRule(
  network: NetworkRules,
  kind: 'listen' | 'loopback',
  port: number,
): NetworkRules['listen'][number] | undefined {
  return network[kind].find(({ from, to }) => from <= port && port <= to);
}

/** The writable paths outermost first: the roots of what may be changed. */
export function writableRoots(ruleset: Ruleset): string[] {
  const roots: string[] = [];
  for (const { path, access } of ruleset.files)
    if (access.write && !roots.some((root) => isWithin(path, root))) roots.push(path);
  return roots;
}
