import { compile, PolicyError, readPolicy, type CompileInput } from '@nd7/policy';
import { compiled } from './compiled.js';

const base: CompileInput = {
  places: { home: '/home/dev', project: '/home/dev/p', tmp: '/tmp', nd7Home: '/home/dev/.nd7', variables: { A: '1' } },
  user: null,
  project: null,
  team: null,
  session: { profile: null, packs: [], policy: null },
  grants: [],
  files: new Map(),
};
const policy = (text: string) => readPolicy(text, '/home/dev/.nd7/policy.jsonc', 'user');

it('is what compile makes, and made once', () => {
  expect(compiled(base)).toEqual(compile(base));
  expect(compiled({ ...base })).toBe(compiled(base));
});

it.each<[string, CompileInput]>([
  ['a variable', { ...base, places: { ...base.places, variables: { A: '2' } } }],
  ['a place', { ...base, places: { ...base.places, project: '/home/dev/q' } }],
  ['a rule', { ...base, user: policy('{"nd7": 1, "files": {"read": {"deny": ["~/x"]}}}') }],
  ['a line', { ...base, user: policy('{"nd7": 1,\n"files": {"read": {"deny": ["~/x"]}}}') }],
  ['a pack', { ...base, session: { ...base.session, packs: ['claude-code'] } }],
  ['a grant', { ...base, grants: [policy('{"nd7": 1, "files": {"read": {"allow": ["/srv"]}}}')] }],
  [
    'a file that another extends',
    { ...base, user: policy('{"nd7": 1, "extends": ["./x"]}'), files: new Map([['./x', policy('{"nd7": 1}')]]) },
  ],
])('%s makes it another', (_what, input) => {
  expect(compiled(input)).not.toBe(compiled(base));
  expect(compiled(input)).toEqual(compile(input));
});

it('of a file that another extends the content counts', () => {
  const user = policy('{"nd7": 1, "extends": ["./x"]}');
  const of = (text: string): CompileInput => ({ ...base, user, files: new Map([['./x', policy(text)]]) });
  const [open, closed] = [of('{"nd7": 1, "files": {"read": {"allow": ["/srv"]}}}'), of('{"nd7": 1}')];
  expect(compiled(open).ruleset).toEqual(compile(open).ruleset);
  expect(compiled(closed).ruleset).toEqual(compile(closed).ruleset);
  expect(compiled(closed).ruleset).not.toEqual(compiled(open).ruleset);
});

it('a mistake is one each time', () => {
  const input = { ...base, user: policy('{"nd7": 1, "extends": ["nobody"]}') };
  for (let i = 0; i < 2; i++) expect(() => compiled(input)).toThrow(PolicyError);
});
