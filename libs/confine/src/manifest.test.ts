// What the manifest says of names and sockets, with a supervisor and without, and what this disk takes away from it.
import { compile, type Ruleset } from '@nd7/policy';
import type { Built, Shortfall } from './view/build.js';
import { manifest, type ManifestRow, type Supervised } from './manifest.js';

const { ruleset } = compile({
  places: { home: '/home/dev', project: '/home/dev/app', tmp: '/tmp', nd7Home: '/home/dev/.nd7', variables: {} },
  user: null,
  project: null,
  team: null,
  session: { profile: null, packs: [], policy: null },
  grants: [],
  files: new Map(),
});
const built = (...shortfalls: Shortfall[]): Built => ({
  view: [],
  rules: [],
  found: { masked: [], held: [], leaves: [], gitDirs: [], unseen: [], closed: [] },
  shortfalls,
  unrun: [],
  stateOf: () => 'shown',
});
const ALL: Supervised = { sockets: true, masks: true };
const row = (property: string, supervised?: Supervised, from: Built = built(), rules: Ruleset = ruleset): ManifestRow =>
  manifest(rules, from, [{ name: 'late-name', verdict: 'held' }], supervised).find(
    (one) => one.property === property,
  ) as ManifestRow;

it.each(['files.leaves', 'files.masks'])('%s is full with a supervisor, and else says what it needs', (property) => {
  expect(row(property, ALL)).toMatchObject({ status: 'full', limit: undefined });
  expect(row(property, ALL).provider).toContain('supervisor');
  expect(row(property)).toMatchObject({ status: 'partial', limit: expect.stringContaining('5.14') as string });
});

it('is no fuller than what the supervisor can do here', () => {
  expect(row('sockets.pathname', ALL)).toMatchObject({ status: 'full', limit: undefined });
  expect(row('sockets.pathname', { ...ALL, sockets: false }).status).toBe('partial');
  expect(row('files.masks', { ...ALL, masks: false }).status).toBe('partial');
  expect(row('files.masks.host', ALL).status).toBe('none');
  expect(row('files.leaves', ALL).proofs).toEqual([{ name: 'late-name', verdict: 'held' }]);
  expect(row('files.leaves').proofs).toEqual([]);
});

it('tells what was not searched, and what has another name', () => {
  const unseen = built({ path: '/home/dev/app/deep', what: 'not searched' });
  expect(row('files.masks', ALL, unseen)).toMatchObject({
    status: 'partial',
    limit: '1 folders were not searched for them',
  });
  expect(row('files.leaves', ALL, unseen)).toMatchObject({
    status: 'full',
    limit: expect.stringContaining('can be removed') as string,
  });
  expect(row('files.leaves', undefined, unseen).limit).toMatch(/5\.14.*; 1 folders/);
  const linked = built({ path: '/home/dev/app/.npmrc', what: 'protected, but it has other names' });
  expect(row('files.leaves', ALL, linked)).toMatchObject({
    status: 'partial',
    limit: expect.stringContaining('/home/dev/app/.npmrc') as string,
  });
});

it('names the sockets that are granted', () => {
  const [source] = ruleset.required.map((one) => one.source);
  const granted = { ...ruleset, sockets: [{ path: '/s', name: 'docker', warning: null, source }] } as Ruleset;
  expect(row('sockets.pathname', ALL, built(), granted)).toMatchObject({ status: 'full', limit: 'granted: docker' });
});

it('says of programs that are started what the broker sees', () => {
  const [without, withBroker] = [false, true].map((isBrokered) =>
    manifest(ruleset, built(), [], ALL, isBrokered).find(({ property }) => property === 'observe.exec'),
  );
  expect(without).toMatchObject({ status: 'none', provider: '' });
  expect(withBroker).toMatchObject({ status: 'partial', provider: expect.stringContaining('broker') as string });
});
