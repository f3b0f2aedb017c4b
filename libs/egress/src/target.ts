import { networkInterfaces } from 'node:os';
import {
  decideHost,
  decideName,
  loopbackAddresses,
  mayDial,
  parseAuthority,
  parseHost,
  portRule,
  type Host,
  type HostDecision,
  type HostRule,
  type NetworkRules,
  type Source,
} from '@nd7/policy';
import { Refusal, type Asker, type Via } from './decision.js';
import type { Resolve } from './lookup.js';

/** A host and port somebody inside asked for, read once. */
export type Target = Host & { port: number };

/** A target that may be dialled: at these addresses and no others. */
export interface Admitted {
  target: Target;
  addresses: string[];
  /** The tunnel may carry anything; else its first bytes must be a ClientHello for the host. */
  raw: boolean;
  source: Source;
}

/** What was admitted for somebody, and the number of the connection that is opened for it; null where that serves several requests. */
export interface Passed extends Admitted {
  via: Via;
  asker: Asker | undefined;
  connection: number | null;
}

/** Reads `host:port`. Throws a Refusal. */
export function readTarget(authority: string): Target {
  const target = parseAuthority(authority);
  if ('fault' in target) throw new Refusal(target.fault, `"${shown(authority)}" is no host and port (${target.fault})`);
  return target;
}

/** Reads a host whose port is known. Throws a Refusal. */
export function readHost(host: string, port: number): Target {
  const read = parseHost(host);
  if ('fault' in read) throw new Refusal(read.fault, `"${shown(host)}" is no host (${read.fault})`);
  return { ...read, port };
}

/**
 * Decides by name and port, then by every address the name stands for. A name that the rules refuse is never looked up, so that a
 * refused name tells nothing to the outside. Throws a Refusal.
 */
export async function admit(target: Target, rules: NetworkRules, resolve: Resolve): Promise<Admitted> {
  const loopback = loopbackAddresses(target.host);
  if (loopback !== undefined)
    return { target, addresses: [...loopback], raw: true, source: loopbackGrant(target, rules) };
  const decision = decideHost(rules, target, target.port);
  if (!decision.allow || decision.rule === null) throw refusedByName(target, decision);
  const { source } = decision.rule;
  const addresses = target.kind === 'ip' ? [target.host] : await lookUp(target.host, resolve, decision.rule);
  checkAddresses(target, addresses, decision, source);
  return { target, addresses, raw: decision.raw, source };
}

/** The rule by which a host may be reached on some port. Throws a Refusal. */
export function sourceOf(target: Target, rules: NetworkRules): Source {
  const decision = decideName(rules, target);
  if (!decision.allow || decision.rule === null) throw refusedByName(target, decision);
  return decision.rule.source;
}

function loopbackGrant({ port }: Target, rules: NetworkRules): Source {
  const grant = portRule(rules, 'loopback', port);
  if (grant !== undefined) return grant.source;
  throw new Refusal('loopback', `port ${String(port)} of this machine's loopback is not granted to the session`);
}

function refusedByName(target: Target, { rule, bound }: HostDecision): Refusal {
  const what = `${shownHost(target)}:${String(target.port)}`;
  if (rule !== null)
    return new Refusal(
      'denied',
      `${what} is refused by "${rule.source.text}" (policy ${rule.source.policy})`,
      rule.source,
    );
  const whose = bound === null ? "this session's policy" : `what the policy ${bound.layer.name} leaves open`;
  return new Refusal('no-rule', `no rule of ${whose} names ${what}`);
}

async function lookUp(name: string, resolve: Resolve, { host, source }: HostRule): Promise<string[]> {
  const found = await resolve(name, zoneOf(name, host)).catch((error: unknown) => {
    throw new Refusal('no-address', `${name} has no address (${codeOf(error)})`, source);
  });
  if (found.length === 0) throw new Refusal('no-address', `${name} has no address`, source);
  return found.map(canonical);
}

/** Whose names wait together: those of one rule, and where it lets all be looked up, or a whole top-level domain, those of one domain. */
function zoneOf(name: string, rule: string): string {
  return rule.replace('*', '').split('.').filter(Boolean).length > 1 ? rule : name.split('.').slice(-2).join('.');
}

/** One address that must not be dialled refuses the name: whoever answers for it cannot be believed about the others. */
function checkAddresses(target: Target, addresses: string[], decision: HostDecision, source: Source): void {
  const ours = ownAddresses();
  for (const address of addresses) {
    const { allow, kind } = mayDial(address, target, decision);
    if (allow && !ours.has(address)) continue;
    const what = ours.has(address) ? 'an address of this machine' : `a ${kind} address`;
    const mend = kind === 'private' ? '; a rule can let a name stand for private addresses' : '';
    throw new Refusal('address', `${target.host} stands for ${address}, ${what}${mend}`, source, addresses);
  }
}

/** In the spelling of `parseHost`, so that no address has two; what is no address stays as it is and is never dialled. */
function canonical(address: string): string {
  const read = parseHost(address.split('%', 1)[0] as string);
  return 'fault' in read || read.kind !== 'ip' ? address : read.host;
}

/** So long an address is not known that this machine has just been given: reading them takes a tenth of a millisecond, for each connection. */
const OWN_MS = 1000;
let own = { addresses: new Set<string>(), until: 0 };

function ownAddresses(): Set<string> {
  const now = performance.now();
  if (now >= own.until) own = { addresses: readOwnAddresses(), until: now + OWN_MS };
  return own.addresses;
}

function readOwnAddresses(): Set<string> {
  const all = Object.values(networkInterfaces()).flatMap((list) => list ?? []);
  return new Set(all.map(({ address }) => canonical(address)));
}

/** `host` as it stands in an authority. */
export function shownHost({ host }: Host): string {
  return host.includes(':') ? `[${host}]` : host;
}

/** What a program said, fit for a log and a terminal: printable ASCII, at most 253 characters. */
export function shown(text: string): string {
  return text.slice(0, 253).replaceAll(/[^\x20-\x7e]/g, (c) => `\\x${c.charCodeAt(0).toString(16).padStart(2, '0')}`);
}

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : 'lookup failed';
}
