/**
 * IP addresses: one canonical spelling, and what an address is for. The proxy dials the address it has checked, so these run on every
 * address a name resolves to.
 */

/** Four decimal numbers of 0 to 255 without leading zeros, as they stand; anything else is no address here. */
export function canonicalIpv4(text: string): string | undefined {
  const parts = text.split('.');
  if (parts.length !== 4) return undefined;
  return parts.every((part) => /^(0|[1-9]\d{0,2})$/.test(part) && Number(part) <= 255) ? text : undefined;
}

/** RFC 5952 spelling of an IPv6 address without brackets or zone; that of the IPv4 address for IPv4-mapped ones. */
export function canonicalIpv6(text: string): string | undefined {
  const groups = ipv6Groups(text);
  if (groups === undefined) return undefined;
  if (groups.slice(0, 5).every((group) => group === 0) && groups[5] === 0xffff) return ipv4Of(groups, 6);
  // The longest run of at least two zero groups becomes ::, the first one on a tie.
  let best = { at: -1, length: 1 };
  for (let at = 0; at < 8; at++) {
    let length = 0;
    while (groups[at + length] === 0) length++;
    if (length > best.length) best = { at, length };
  }
  const hex = groups.map((group) => group.toString(16));
  if (best.at < 0) return hex.join(':');
  return `${hex.slice(0, best.at).join(':')}::${hex.slice(best.at + best.length).join(':')}`;
}

function ipv6Groups(text: string): number[] | undefined {
  if (!/^[0-9A-Fa-f:.]{2,45}$/.test(text)) return undefined;
  const halves = text.split('::');
  if (halves.length > 2) return undefined;
  const [left, right] = [groupsOf(halves[0] as string, halves.length === 1), groupsOf(halves[1] ?? '', true)];
  if (left === undefined || right === undefined) return undefined;
  const missing = 8 - left.length - right.length;
  if (halves.length === 1) return missing === 0 ? left : undefined;
  return missing >= 1 ? [...left, ...Array<number>(missing).fill(0), ...right] : undefined;
}

/** `last`: these groups end the address, where the two last may be written as an IPv4 address. */
function groupsOf(text: string, last: boolean): number[] | undefined {
  if (text === '') return [];
  const groups: number[] = [];
  const parts = text.split(':');
  for (const [i, part] of parts.entries()) {
    if (part.includes('.')) {
      if (!last || i !== parts.length - 1 || canonicalIpv4(part) === undefined) return undefined;
      const [a = 0, b = 0, c = 0, d = 0] = part.split('.').map(Number);
      groups.push((a << 8) | b, (c << 8) | d);
    } else if (/^[0-9A-Fa-f]{1,4}$/.test(part)) groups.push(parseInt(part, 16));
    else return undefined;
  }
  return groups;
}

function ipv4Of(groups: readonly number[], at: number): string {
  const [high = 0, low = 0] = groups.slice(at, at + 2);
  return [high >> 8, high & 255, low >> 8, low & 255].join('.');
}

export type AddressKind =
  | 'public'
  | 'private' // RFC 1918, RFC 6598, ULA, site-local
  | 'loopback'
  | 'link-local'
  | 'metadata' // a cloud's metadata or host service, wherever its address lies
  | 'multicast'
  | 'unspecified'
  | 'reserved'; // documentation, benchmarking, tunnels, not assigned

/** Cloud metadata and host services outside link-local space: Azure, Oracle, Alibaba; Google on IPv6. */
const METADATA = new Set(['168.63.129.16', '192.0.0.192', '100.100.100.200', 'fd20:ce::254', '169.254.169.254']);

/** IANA special-purpose address registries (RFC 6890 and successors); first match decides. */
const IPV4: readonly (readonly [string, number, AddressKind])[] = [
  ['0.0.0.0', 8, 'unspecified'],
  ['10.0.0.0', 8, 'private'],
  ['100.64.0.0', 10, 'private'],
  ['127.0.0.0', 8, 'loopback'],
  ['169.254.0.0', 16, 'link-local'],
  ['172.16.0.0', 12, 'private'],
  ['192.0.0.0', 24, 'reserved'],
  ['192.0.2.0', 24, 'reserved'],
  ['192.88.99.0', 24, 'reserved'],
  ['192.168.0.0', 16, 'private'],
  ['198.18.0.0', 15, 'reserved'],
  ['198.51.100.0', 24, 'reserved'],
  ['203.0.113.0', 24, 'reserved'],
  ['224.0.0.0', 4, 'multicast'],
  ['240.0.0.0', 4, 'reserved'],
];

const IPV4_PREFIXES = IPV4.map(([base, bits, kind]) => ({ prefix: ipv4Value(base) >>> (32 - bits), bits, kind }));

/** What an address in canonical spelling is for; of addresses that carry an IPv4 address (NAT64, 6to4) what that one is for. */
export function addressKind(address: string): AddressKind {
  if (METADATA.has(address)) return 'metadata';
  if (canonicalIpv4(address) !== undefined) {
    const value = ipv4Value(address);
    return IPV4_PREFIXES.find(({ prefix, bits }) => value >>> (32 - bits) === prefix)?.kind ?? 'public';
  }
  const groups = ipv6Groups(address);
  return groups === undefined ? 'reserved' : ipv6Kind(groups);
}

function ipv4Value(address: string): number {
  return address.split('.').reduce((value, part) => value * 256 + Number(part), 0);
}

function ipv6Kind(groups: readonly number[]): AddressKind {
  const [a = 0, b = 0] = groups;
  const zeros = (until: number): boolean => groups.slice(0, until).every((group) => group === 0);
  if (zeros(8)) return 'unspecified';
  if (zeros(7) && groups[7] === 1) return 'loopback';
  if (zeros(5) && groups[5] === 0xffff) return addressKind(ipv4Of(groups, 6));
  if (a === 0x64 && b === 0xff9b && groups.slice(2, 6).every((group) => group === 0))
    return addressKind(ipv4Of(groups, 6));
  if (a === 0x2002) return addressKind(ipv4Of(groups, 1));
  if ((a & 0xffc0) === 0xfe80) return 'link-local';
  // All that AWS has there are services of the host: metadata (::254), credentials of pods (::23), names (::253), time (::123).
  if (a === 0xfd00 && b === 0xec2) return 'metadata';
  if ((a & 0xfe00) === 0xfc00 || (a & 0xffc0) === 0xfec0) return 'private';
  if ((a & 0xff00) === 0xff00) return 'multicast';
  // Protocol assignments with Teredo and ORCHID, documentation.
  if ((a === 0x2001 && (b < 0x200 || b === 0xdb8)) || (a === 0x3fff && b < 0x1000)) return 'reserved';
  return (a & 0xe000) === 0x2000 ? 'public' : 'reserved';
}
