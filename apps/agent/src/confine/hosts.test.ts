// What the summary of a session says of hosts that it was refused.
import type { EgressDecision } from '@nd7/egress';
import { RefusedHosts } from './hosts.js';
import { summary } from './mediate.js';

const decision = (said: Partial<EgressDecision>): EgressDecision => ({
  via: 'connect',
  host: 'a.test',
  port: 443,
  verdict: 'deny',
  reason: 'no-rule',
  source: null,
  addresses: [],
  ...said,
});

it('counts refusals by host and rule, the most frequent first, and nothing that was let through', () => {
  const hosts = new RefusedHosts();
  const source = { layer: 'user', policy: 'p', file: null, line: null, text: 'network.deny: b.test' } as const;
  for (const said of [
    {},
    { verdict: 'allow', reason: null, host: 'c.test' },
    { host: 'b.test', reason: 'denied', source },
    {},
  ] as const)
    hosts.add(decision(said));
  hosts.add(decision({ host: 'x\u001b[2J', port: null, reason: 'bad-host' as never }));
  expect(summary(hosts.tallies)).toEqual([
    'refused 2 times: a.test:443, by the proxy (no-rule) (nd7 why a.test:443)',
    'refused 1 time: b.test:443, by network.deny: b.test (nd7 why b.test:443)',
    "refused 1 time: x⟦ESC⟧[2J, by the proxy (bad-host) (nd7 why 'x⟦ESC⟧[2J')",
  ]);
});

it('keeps a thousand hosts apart and no more', () => {
  const hosts = new RefusedHosts();
  for (let i = 0; i < 3_000; i++) hosts.add(decision({ host: `h${i}.test` }));
  hosts.add(decision({ host: 'h7.test' }));
  expect([hosts.tallies.length, hosts.tallies[0]?.path, hosts.tallies[0]?.count]).toEqual([1_000, 'h7.test:443', 2]);
});
