import fc from 'fast-check';
import { addressKind, canonicalIpv4, canonicalIpv6 } from './address.js';
import { PolicyError } from './failure.js';
import { hostMatches, parseAuthority, parseHost, parseHostPattern, parseHostRule, parsePortRange } from './host.js';

describe('parseHost', () => {
  it.each([
    ['example.com', 'example.com'],
    ['EXAMPLE.Com', 'example.com'],
    ['a.b-c.d9', 'a.b-c.d9'],
    ['localhost', 'localhost'],
    ['xn--bcher-kva.example', 'xn--bcher-kva.example'],
    ['1password.com', '1password.com'],
    ['3.example', '3.example'],
    [`${'a'.repeat(63)}.com`, `${'a'.repeat(63)}.com`],
  ])('takes the name %j', (text, host) => {
    expect(parseHost(text)).toEqual({ kind: 'name', host });
  });

  it.each([
    ['192.0.2.1', '192.0.2.1'],
    ['0.0.0.0', '0.0.0.0'],
    ['[2001:DB8::1]', '2001:db8::1'],
    ['2001:db8:0:0:0:0:0:1', '2001:db8::1'],
    ['::', '::'],
    ['::1', '::1'],
    ['1::', '1::'],
    ['2001:db8:0:1:1:1:1:1', '2001:db8:0:1:1:1:1:1'],
    ['2001:0:0:1:0:0:0:1', '2001:0:0:1::1'],
    ['::ffff:192.0.2.1', '192.0.2.1'],
    ['[::ffff:c000:201]', '192.0.2.1'],
    ['64:ff9b::192.0.2.1', '64:ff9b::c000:201'],
  ])('takes the address %j as %j', (text, host) => {
    expect(parseHost(text)).toEqual({ kind: 'ip', host });
  });

  it.each([
    ['', 'empty'],
    ['example.com.', 'trailing-dot'],
    ['localhost.', 'trailing-dot'],
    ['.', 'empty-label'],
    ['..', 'empty-label'],
    ['example..com', 'empty-label'],
    ['.example.com', 'empty-label'],
    ['evil.test\0.example.com', 'not-ldh'],
    ['evil.test%00.example.com', 'not-ldh'],
    ['example.com\n', 'not-ldh'],
    ['example.com\r\nHost: evil.test', 'odd-address'],
    [' example.com', 'not-ldh'],
    ['example.com\t', 'not-ldh'],
    ['exa_mple.com', 'not-ldh'],
    ['user@example.com', 'not-ldh'],
    ['example.com/', 'not-ldh'],
    ['example.com#', 'not-ldh'],
    ['example.com?', 'not-ldh'],
    ['example.com\\', 'not-ldh'],
    ['*.example.com', 'not-ldh'],
    ['b\u00fccher.example', 'not-ldh'],
    ['ex\u0430mple.com', 'not-ldh'],
    ['example\u3002com', 'not-ldh'],
    ['example\uff0ecom', 'not-ldh'],
    ['\uff45xample.com', 'not-ldh'],
    ['exam\u00adple.com', 'not-ldh'],
    ['\u2488example.com', 'not-ldh'],
    ['example.com\u200b', 'not-ldh'],
    ['\u212aeep.example', 'not-ldh'],
    ['-example.com', 'hyphen'],
    ['example-.com', 'hyphen'],
    ['ab--c.example', 'hyphen'],
    [`${'a'.repeat(64)}.com`, 'too-long'],
    [`${'a.'.repeat(127)}com`, 'too-long'],
    ['a'.repeat(100_000), 'too-long'],
    ['127.1', 'odd-address'],
    ['127.0.1', 'odd-address'],
    ['2130706433', 'odd-address'],
    ['0x7f000001', 'odd-address'],
    ['0x7f.1', 'odd-address'],
    ['0X7F.0.0.1', 'odd-address'],
    ['0177.0.0.1', 'odd-address'],
    ['017700000001', 'odd-address'],
    ['127.0.0.01', 'odd-address'],
    ['127.0.0.256', 'odd-address'],
    ['1.2.3.4.5', 'odd-address'],
    ['a.1', 'odd-address'],
    ['example.0x', 'odd-address'],
    ['00.0.0.0', 'odd-address'],
    [':::', 'odd-address'],
    ['1::2::3', 'odd-address'],
    ['1:2:3:4:5:6:7:8:9', 'odd-address'],
    ['1:2:3:4:5:6:7::8', 'odd-address'],
    ['fe80::1%eth0', 'odd-address'],
    ['fe80::1%25eth0', 'odd-address'],
    ['[::1', 'odd-address'],
    ['::1]', 'odd-address'],
    ['[]', 'odd-address'],
    ['[127.0.0.1]', 'odd-address'],
    ['::1.2.3', 'odd-address'],
    ['::1.2.3.4:5', 'odd-address'],
    ['::127.1', 'odd-address'],
    ['12345::', 'odd-address'],
    ['example.com:443', 'odd-address'],
  ])('of %j says %s', (text, fault) => {
    expect(parseHost(text)).toEqual({ fault });
  });

  it('never throws, and what it gives is what it was given, case apart, or a canonical address that reads as itself', () => {
    const near = fc.oneof(
      fc.string({ unit: 'binary' }),
      fc.string({ unit: fc.constantFrom(...'aA0x9-.:[]%fF\0\u3002 @/_') }),
      fc.domain(),
      fc.ipV4Extended(),
      fc.ipV6(),
    );
    fc.assert(
      fc.property(near, (text) => {
        const host = parseHost(text);
        if ('fault' in host) return;
        expect(parseHost(host.host)).toEqual(host);
        if (host.kind === 'name') {
          expect(host.host).toBe(text.toLowerCase());
          expect(host.host).toMatch(/^[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?$/);
        }
      }),
      { numRuns: 2_000 },
    );
  });

  it('agrees with the URL standard wherever both take a host: nobody dials another one', () => {
    fc.assert(
      fc.property(
        fc.oneof(fc.ipV4Extended(), fc.domain(), fc.string({ unit: fc.constantFrom(...'a0x1.:f[]') })),
        (text) => {
          const host = parseHost(text);
          if ('fault' in host) return;
          const bracketed = host.host.includes(':') ? `[${host.host}]` : host.host;
          const url = new URL(`http://${text.includes(':') && !text.startsWith('[') ? `[${text}]` : text}/`);
          // The URL standard keeps IPv4-mapped addresses as IPv6; they are one and the same to a socket.
          expect([bracketed, `[${mapped(host.host)}]`]).toContain(url.hostname);
        },
      ),
      { numRuns: 2_000 },
    );
  });
});

function mapped(address: string): string {
  const [a = 0, b = 0, c = 0, d = 0] = address.split('.').map(Number);
  return `::ffff:${((a << 8) | b).toString(16)}:${((c << 8) | d).toString(16)}`;
}

describe('parseAuthority', () => {
  it.each([
    ['example.com:443', { kind: 'name', host: 'example.com', port: 443 }],
    ['192.0.2.1:1', { kind: 'ip', host: '192.0.2.1', port: 1 }],
    ['[::1]:65535', { kind: 'ip', host: '::1', port: 65_535 }],
  ])('takes %j', (text, authority) => {
    expect(parseAuthority(text)).toEqual(authority);
  });

  it.each([
    'example.com',
    'example.com:',
    'example.com:0',
    'example.com:65536',
    'example.com:443443',
    'example.com:0443',
    'example.com:+443',
    'example.com: 443',
    'example.com:443 ',
    'example.com:4e2',
    'example.com:0x1bb',
    'example.com:\u0664\u0664\u0663',
    'a:b@example.com:443',
    '::1:443',
    '2001:db8::1:443',
    '[::1]',
    '[::1]443',
    'example.com.:443',
    'http://example.com:443',
    'example.com:443/',
    'evil.test\0.example.com:443',
    ':443',
    '',
  ])('refuses %j', (text) => {
    expect(parseAuthority(text)).toHaveProperty('fault');
  });
});

describe('a host of a rule', () => {
  it('is a host, a wildcard for whole labels at the beginning, or *', () => {
    expect(parseHostPattern('*')).toBe('*');
    expect(parseHostPattern('*.Example.com')).toBe('*.example.com');
    for (const bad of [
      '**',
      '*.',
      '*.*.com',
      'a.*.com',
      '*a.com',
      '*.192.0.2.1',
      '*.[::1]',
      'https://a.b',
      'a.b.',
      '',
      '*.b\u00fccher.de',
    ])
      expect(() => parseHostPattern(bad)).toThrow(PolicyError);
  });

  it('means: exactly it; every name below it and not itself; every name and no address', () => {
    const name = (text: string) => parseHost(text) as { kind: 'name'; host: string };
    expect(hostMatches('example.com', name('example.com'))).toBe(true);
    expect(hostMatches('example.com', name('a.example.com'))).toBe(false);
    expect(hostMatches('*.example.com', name('a.b.example.com'))).toBe(true);
    expect(hostMatches('*.example.com', name('example.com'))).toBe(false);
    expect(hostMatches('*.example.com', name('evilexample.com'))).toBe(false);
    expect(hostMatches('*.example.com', name('example.com.evil.test'))).toBe(false);
    expect(hostMatches('*', name('anything.test'))).toBe(true);
    expect(hostMatches('*', name('192.0.2.1'))).toBe(false);
  });

  it('may have ports, 443 where it has none', () => {
    const https = [{ from: 443, to: 443 }];
    expect(parseHostRule('example.com')).toEqual({ host: 'example.com', ports: https });
    expect(parseHostRule('example.com:8000-8010,9000').ports).toEqual([
      { from: 8_000, to: 8_010 },
      { from: 9_000, to: 9_000 },
    ]);
    expect(parseHostRule('*:*')).toEqual({ host: '*', ports: [{ from: 1, to: 65_535 }] });
    expect(parseHostRule('[2001:db8::1]:22')).toEqual({ host: '2001:db8::1', ports: [{ from: 22, to: 22 }] });
    for (const bad of [
      'example.com:',
      'example.com:0',
      'example.com:9-8',
      'example.com:1-2-3',
      'example.com:99999',
      '2001:db8::1',
      ':443',
      'a.b:443:1',
    ])
      expect(() => parseHostRule(bad)).toThrow(PolicyError);
    expect(() => parsePortRange('')).toThrow(PolicyError);
  });
});

describe('addressKind', () => {
  it.each([
    ['8.8.8.8', 'public'],
    ['0.0.0.0', 'unspecified'],
    ['10.1.2.3', 'private'],
    ['100.64.0.1', 'private'],
    ['100.100.100.200', 'metadata'],
    ['127.0.0.1', 'loopback'],
    ['127.255.255.254', 'loopback'],
    ['169.254.1.1', 'link-local'],
    ['169.254.169.254', 'metadata'],
    ['168.63.129.16', 'metadata'],
    ['172.15.255.255', 'public'],
    ['172.16.0.1', 'private'],
    ['172.31.255.255', 'private'],
    ['172.32.0.0', 'public'],
    ['192.168.0.1', 'private'],
    ['198.18.0.1', 'reserved'],
    ['198.20.0.0', 'public'],
    ['224.0.0.1', 'multicast'],
    ['255.255.255.255', 'reserved'],
    ['::', 'unspecified'],
    ['::1', 'loopback'],
    ['::2', 'reserved'],
    ['::7f00:1', 'reserved'],
    ['fe80::1', 'link-local'],
    ['febf::1', 'link-local'],
    ['fec0::1', 'private'],
    ['fd00::1', 'private'],
    ['fd00:ec2::254', 'metadata'],
    ['fd00:ec2::23', 'metadata'],
    ['fd00:ec3::23', 'private'],
    ['ff02::1', 'multicast'],
    ['64:ff9b::7f00:1', 'loopback'],
    ['64:ff9b::a9fe:a9fe', 'metadata'],
    ['64:ff9b::808:808', 'public'],
    ['2002:7f00:1::', 'loopback'],
    ['2002:a00:1::1', 'private'],
    ['2001::1', 'reserved'],
    ['2001:db8::1', 'reserved'],
    ['2606:4700::1111', 'public'],
    ['4000::1', 'reserved'],
    ['nonsense', 'reserved'],
  ])('of %s is %s', (address, kind) => {
    expect(addressKind(address)).toBe(kind);
  });

  it('is the same for every spelling of an address, and every canonical spelling is its own', () => {
    fc.assert(
      fc.property(
        fc.array(fc.integer({ min: 0, max: 0xffff }), { minLength: 8, maxLength: 8 }),
        fc.nat(7),
        fc.nat(7),
        (groups, from, length) => {
          const zeroed = groups.map((group, i) => (i >= from && i < from + length ? 0 : group));
          const long = zeroed.map((group) => group.toString(16).padStart(4, '0').toUpperCase()).join(':');
          const canonical = canonicalIpv6(long) as string;
          expect(canonicalIpv6(canonical) ?? canonicalIpv4(canonical)).toBe(canonical);
          const url = new URL(`http://[${long}]/`).hostname.slice(1, -1);
          expect([canonical, mapped(canonical)]).toContain(url);
        },
      ),
      { numRuns: 1_000 },
    );
  });
});
