import { canonicalIpv4, canonicalIpv6 } from './address.js';
import { PolicyError } from './failure.js';
import type { PortRange } from './ruleset.js';

/** A host as it is compared, looked up and dialled: the parsed value, never the text it came from. */
export type Host = { kind: 'name'; host: string } | { kind: 'ip'; host: string };

/** Why a text is no host. */
export type HostFault =
  | 'empty'
  | 'too-long' // over 253 characters, or a label over 63
  | 'not-ldh' // anything but letters, digits and hyphens in a label: NUL, blanks, `_`, `@`, `%`, Unicode
  | 'empty-label' // `a..b`, `.a`
  | 'trailing-dot'
  | 'hyphen' // a label that begins or ends with one, or has two in places 3 and 4 and is no `xn--`
  | 'odd-address'; // an IPv4 address in another spelling than four decimal numbers, an IPv6 one with a zone or none at all

const MAX_NAME = 253;
const MAX_LABEL = 63;

/**
 * Reads a host name or an IP literal, strictly, in one place. Names: ASCII letters, digits and hyphens in labels of 1 to 63 (RFC 1123,
 * RFC 5890 LDH), lower-cased, at most 253 long, no trailing dot. Unicode is refused, not converted; an `xn--` label is taken as it stands.
 * IPv4 only as four decimal numbers without leading zeros: other spellings mean different addresses to different programs. IPv6 with or
 * without brackets, canonical by RFC 5952 in the result; one that holds an IPv4 address (`::ffff:1.2.3.4`) is that IPv4 address.
 */
export function parseHost(text: string): Host | { fault: HostFault } {
  if (text === '') return { fault: 'empty' };
  if (text.startsWith('[') || text.includes(':')) return ipv6(text);
  if (text.length > MAX_NAME + 1) return { fault: 'too-long' };
  if (!/^[A-Za-z0-9.-]+$/.test(text) || text.length !== text.trim().length) return { fault: 'not-ldh' };
  if (text.endsWith('.')) return { fault: text === '.' || text.endsWith('..') ? 'empty-label' : 'trailing-dot' };
  if (text.length > MAX_NAME) return { fault: 'too-long' };
  const host = text.toLowerCase();
  const labels = host.split('.');
  for (const label of labels) {
    if (label === '') return { fault: 'empty-label' };
    if (label.length > MAX_LABEL) return { fault: 'too-long' };
    if (label.startsWith('-') || label.endsWith('-')) return { fault: 'hyphen' };
    if (label.slice(2, 4) === '--' && !label.startsWith('xn--')) return { fault: 'hyphen' };
  }
  // Ends in a number: every resolver that follows inet_aton or the URL standard takes it for an address, never for a name.
  if (/^(\d+|0x[0-9a-f]*)$/.test(labels.at(-1) as string)) {
    const address = canonicalIpv4(host);
    return address === undefined ? { fault: 'odd-address' } : { kind: 'ip', host: address };
  }
  return { kind: 'name', host };
}

function ipv6(text: string): Host | { fault: HostFault } {
  const bare = text.startsWith('[') && text.endsWith(']') ? text.slice(1, -1) : text;
  const address = canonicalIpv6(bare);
  return address === undefined ? { fault: 'odd-address' } : { kind: 'ip', host: address };
}

/** The `host:port` of a CONNECT request or of an absolute-form URL with a port: the port must be there. No userinfo, path or blanks. */
export function parseAuthority(text: string): (Host & { port: number }) | { fault: HostFault | 'bad-port' } {
  const colon = text.lastIndexOf(':');
  if (colon < 0) return { fault: 'bad-port' };
  const port = parsePort(text.slice(colon + 1));
  if (port === undefined) return { fault: 'bad-port' };
  const name = text.slice(0, colon);
  // Without brackets nobody can say where an IPv6 address ends and its port begins.
  if (name.includes(':') && !(name.startsWith('[') && name.endsWith(']'))) return { fault: 'odd-address' };
  const host = parseHost(name);
  return 'fault' in host ? host : { ...host, port };
}

/** 1 to 65535, decimal, no sign and no leading zero. */
export function parsePort(text: string): number | undefined {
  if (!/^[1-9]\d{0,4}$/.test(text)) return undefined;
  const port = Number(text);
  return port <= 65_535 ? port : undefined;
}

/** `443`, `3000-3010`. */
export function parsePortRange(text: string): PortRange {
  const [first = '', last = first, ...more] = text.split('-');
  const [from, to] = [parsePort(first), parsePort(last)];
  if (from === undefined || to === undefined || more.length > 0 || to < from)
    throw new PolicyError('bad-ports', `"${text}" is no port and no range of ports`, 'Write 443, or 3000-3010.');
  return { from, to };
}

/** A host of a rule: a host, `*.` and a name, or `*`. Returned in the form of `HostRule.host`. */
export function parseHostPattern(text: string): string {
  if (text === '*') return text;
  const wild = text.startsWith('*.');
  const host = parseHost(wild ? text.slice(2) : text);
  if ('fault' in host) throw badHost(text, host.fault);
  if (wild && host.kind === 'ip') throw badHost(text, 'odd-address');
  return wild ? `*.${host.host}` : host.host;
}

function badHost(text: string, fault: HostFault): PolicyError {
  const mend =
    fault === 'trailing-dot'
      ? 'Leave out the dot at the end.'
      : fault === 'not-ldh' && text.includes('*')
        ? 'A wildcard stands alone or for whole labels at the beginning: *.example.com.'
        : fault === 'not-ldh' && text.includes('/')
          ? 'A rule names a host, not a URL: example.com, example.com:8443.'
          : fault === 'odd-address'
            ? 'Write an IPv4 address as four decimal numbers and an IPv6 address in brackets.'
            : 'Letters, digits and hyphens, with dots between; names beyond ASCII in their xn-- form.';
  return new PolicyError('bad-host', `"${text}" is no host name (${fault})`, mend);
}

/** `example.com` (port 443), `example.com:8443`, `*.example.com:8000-8100`, `example.com:*`, `[2001:db8::1]:443`. */
export function parseHostRule(text: string): { host: string; ports: PortRange[] } {
  if (text.includes('/')) throw badHost(text, 'not-ldh');
  const match = /^(\[[^\]]*\]|[^:]*)(?::(.*))?$/.exec(text);
  if (match === null) throw badHost(text, 'odd-address');
  const [, host = '', ports] = match;
  return { host: parseHostPattern(host), ports: ports === undefined ? [HTTPS] : parsePorts(ports) };
}

const HTTPS: PortRange = { from: 443, to: 443 };
export const EVERY_PORT: PortRange = { from: 1, to: 65_535 };

function parsePorts(text: string): PortRange[] {
  return text === '*' ? [EVERY_PORT] : text.split(',').map(parsePortRange);
}

/** Whether a rule's host means this host. `*` is every name and no address; `*.a.b` every name below a.b, at any depth, and not a.b. */
export function hostMatches(pattern: string, host: Host): boolean {
  if (pattern === '*') return host.kind === 'name';
  if (pattern.startsWith('*.')) return host.kind === 'name' && host.host.endsWith(pattern.slice(1));
  return pattern === host.host;
}

/** How narrow a rule's host is: more labels, less of the world. Exact hosts stand above all wildcards. */
export function hostSpecificity(pattern: string): number {
  if (pattern === '*') return 0;
  return pattern.startsWith('*.') ? pattern.split('.').length - 1 : Number.MAX_SAFE_INTEGER;
}
