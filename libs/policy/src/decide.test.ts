import fc from 'fast-check';
import { decideHost, decideName } from './decide.js';
import { parseHost, type Host } from './host.js';
import type { HostRule } from './ruleset.js';

const source = { layer: 'user', policy: 'test', file: null, line: null, text: '' } as const;
const PORTS = [1, 22, 80, 443, 444, 8080, 65_535];
const rules = fc.array(
  fc
    .record({
      host: fc.constantFrom('*', '*.b', 'a.b', 'c'),
      between: fc.tuple(fc.constantFrom(...PORTS), fc.constantFrom(...PORTS)),
      allow: fc.boolean(),
    })
    .map(({ host, between: [x, y], allow }): HostRule => {
      const ports = { from: Math.min(x, y), to: Math.max(x, y) };
      return { host, ports, allow, raw: false, privateAddresses: false, source };
    }),
  { maxLength: 5 },
);

describe('decideName', () => {
  it('allows a name exactly where some port of it is allowed', () => {
    const bound = fc.record({ rules, otherwise: fc.constantFrom<'allow' | 'deny'>('allow', 'deny') }).map((one) => ({
      ...one,
      layer: { kind: 'only' as const, name: 'test', layer: 'user' as const },
    }));
    fc.assert(
      fc.property(
        rules,
        fc.array(bound, { maxLength: 2 }),
        fc.constantFrom('a.b', 'c', 'd', '192.0.2.1'),
        (hosts, bounds, name) => {
          const network = { hosts, bounds } as unknown as Parameters<typeof decideHost>[0];
          const host = parseHost(name) as Host;
          // Of all ports those count at which a rule begins or ends, and their neighbours.
          const ports = PORTS.flatMap((port) => [port - 1, port, port + 1]).filter(
            (port) => port > 0 && port <= 65_535,
          );
          expect(decideName(network, host).allow).toBe(ports.some((port) => decideHost(network, host, port).allow));
        },
      ),
    );
  });

  it('says of a name that is refused what 443 says', () => {
    const network = { hosts: [], bounds: [] };
    const host = parseHost('a.b') as Host;
    expect(decideName(network, host)).toEqual(decideHost(network, host, 443));
  });
});
