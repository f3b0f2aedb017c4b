// The supervisor's matcher in C against `maskAt` and `leafAt`: the same of any table and any path, and fast.
import { spawnSync } from 'node:child_process';
import {
  foldName,
  leafAt,
  looksLikeGitDir,
  maskedPrefix,
  type Mask,
  type ProtectedLeaf,
  type Source,
} from '@nd7/policy';
import fc from 'fast-check';
import { buildOracle, fuzzer, Oracle, type Asked } from './oracle.fixture.js';
import { encodeNames } from './table.js';

beforeAll(buildOracle, 120_000);

const NAMES = [
  'a',
  'b',
  'A',
  'ab',
  '.git',
  '.GIT.',
  '.g\u200cit',
  'modules',
  'worktrees',
  'hooks',
  'node_modules',
  '.env',
  '.env.x',
  'é',
  'e\u0301',
  'ﬀ',
  'ß',
  '\u1e9e',
  'İ',
  'Σ',
  'ας',
  '\u1fb3\u0301',
  'a:b',
  ':a',
  'a ',
  '. ',
  '…',
  '한',
  '😀',
  '\u2100',
  'ﷺ',
  '\u200c',
  '*',
];
const name = fc.oneof(
  { weight: 8, arbitrary: fc.constantFrom(...NAMES) },
  fc.string({ unit: 'grapheme', minLength: 1, maxLength: 4 }).map((text) => text.replaceAll(/[/\0]/g, 'x')),
);
const component = name.filter((text) => text !== '.' && text !== '..');
const part = fc.oneof(
  component.filter((text) => !text.includes('**')),
  fc.constantFrom('*', 'a*', '*b', '.env*', 'é*', '*a*b*', '*\u0301', 'Σ*'),
);
const pattern = (deep: boolean): fc.Arbitrary<string> =>
  fc
    .array(deep ? fc.oneof(part, fc.constant('**')) : part, { minLength: 1, maxLength: 3 })
    .map((parts) => (parts.at(-1) === '**' ? [...parts, 'a'] : parts).join('/'));
const folder = fc.array(fc.oneof(fc.constantFrom('h', 'p', 'a', 'b'), component), { maxLength: 2 }).map(under('/h/p'));
function under(base: string): (parts: readonly string[]) => string {
  return (parts) => [base, ...parts].join('/');
}
const place = fc.oneof(fc.constantFrom('/', '/h', '/h/p'), folder);
const few = <T>(item: fc.Arbitrary<T>): fc.Arbitrary<T[]> => fc.array(item, { maxLength: 3 });
const source = fc
  .constantFrom('fixed', 'team', 'project', 'user', 'profile', 'grant')
  .map((layer): Source => ({ layer, policy: 'test', file: null, line: null, text: 'test' }));

const someMask: fc.Arbitrary<Mask> = fc.record({
  under: few(place),
  pattern: pattern(true),
  except: few(pattern(true)),
  exceptPaths: few(place),
  notBelow: few(fc.constantFrom('node_modules', 'a', 'é')),
  exceptTracked: fc.boolean(),
  source,
});
const someLeaf: fc.Arbitrary<ProtectedLeaf> = fc
  .record({
    at: fc.constantFrom('anywhere', 'git-dir', 'folder'),
    under: few(place),
    pattern: pattern(false),
    below: fc.boolean(),
    notBelow: few(fc.constantFrom('node_modules', 'a', 'é')),
    exceptPaths: few(place),
    treatment: fc.constantFrom('refuse', 'mediate', 'record'),
    mediator: fc.constantFrom('git-config' as const, 'git-pointer' as const, 'claude-state' as const),
    because: fc.constant('of the test'),
    source,
  })
  .map((leaf) => ({ ...leaf, mediator: leaf.treatment === 'mediate' ? leaf.mediator : null }));

/** Components of a path, some of them no UTF-8, and of which of its folders something is known. */
const hostile = fc.oneof(
  { weight: 6, arbitrary: component.map((text) => Buffer.from(text)) },
  fc
    .uint8Array({ minLength: 1, maxLength: 5 })
    .map((bytes) => Buffer.from(bytes.map((byte) => (byte === 0 || byte === 0x2f || byte === 0x2e ? 0xc3 : byte)))),
  fc
    .constantFrom('a\xff', '\xed\xa0\x80', '\xf0\x9f\x98', '\xe2\x82a', '\xc0\xaf', '.git\xcc')
    .map((text) => Buffer.from(text, 'latin1')),
);
const somePath = fc.record({
  parts: fc.tuple(fc.constantFrom('', 'h', 'h/p'), fc.array(hostile, { maxLength: 6 })).map(([base, parts]) => [
    ...base
      .split('/')
      .filter(Boolean)
      .map((text) => Buffer.from(text)),
    ...parts,
  ]),
  gitDirs: fc.array(fc.nat(8), { maxLength: 3 }),
  held: fc.array(fc.nat(8), { maxLength: 2 }),
});
const prefix = (parts: readonly Buffer[], count: number): Buffer =>
  count === 0 ? Buffer.from('/') : Buffer.concat(parts.slice(0, count).flatMap((bytes) => [Buffer.from('/'), bytes]));

const TREATMENTS = ['record', 'mediate', 'refuse'];

it.each(['names-oracle', 'names-oracle-sanitized'] as const)(
  '%s judges every path as maskAt and leafAt do',
  (build) => {
    fc.assert(
      fc.property(
        fc.array(someMask, { maxLength: 6 }),
        fc.array(someLeaf, { maxLength: 8 }),
        fc.array(somePath, { minLength: 10, maxLength: 40 }),
        (masks, leaves, paths) => {
          const asked = paths.map(({ parts, gitDirs, held }): Asked => ({
            path: prefix(parts, parts.length),
            gitDirs: gitDirs.map((count) => prefix(parts, count)),
            held: held.map((count) => prefix(parts, count)),
          }));
          const judged = new Oracle(encodeNames({ masks, leaves }), build).judge(asked);
          const read = asked.map(({ path, gitDirs = [], held = [] }) => {
            const [text, repositories, files] = [path.toString(), strings(gitDirs), strings(held)];
            const hidden = masks.map((mask) => maskedPrefix(mask, text, (file) => files.has(file)));
            const mask = hidden.findIndex((found) => found !== undefined);
            const leaf = leafAt(leaves, text, (dir) => looksLikeGitDir(dir) || repositories.has(dir));
            return {
              mask: mask < 0 ? undefined : mask,
              maskParts: mask < 0 ? 0 : (hidden[mask] ?? '').split('/').length - 1,
              leaf: leaf === undefined ? undefined : leaves.indexOf(leaf),
              treatment: leaf?.treatment ?? 'record',
            };
          });
          expect(
            judged.map(({ mask, maskParts, leaf, treatment }) => ({
              mask,
              maskParts,
              leaf,
              treatment: TREATMENTS[treatment],
            })),
          ).toEqual(read);
        },
      ),
      { numRuns: build === 'names-oracle' ? 600 : 60 },
    );
  },
);

const strings = (paths: readonly Buffer[]): Set<string> => new Set(paths.map((path) => path.toString()));

it('folds every character, and marks in any order, as foldName does', () => {
  const oracle = new Oracle(encodeNames({ masks: [], leaves: [] }));
  const names: string[] = [];
  for (let code = 1; code <= 0x10ffff; code++)
    if ((code < 0xd800 || code > 0xdfff) && code !== 0x2f) names.push(`a${String.fromCodePoint(code)}\u0301b`);
  const odd = oracle
    .fold(names)
    .flatMap((folded, i) => (folded === foldName(names[i] as string) ? [] : [names[i] as string]));
  expect(odd).toEqual([]);
  fc.assert(
    fc.property(fc.array(fc.string({ unit: 'binary', minLength: 1 }), { minLength: 50 }), (texts) => {
      expect(oracle.fold(texts)).toEqual(texts.map(foldName));
    }),
    { numRuns: 40 },
  );
});

it('stands tables that are nearly right and hostile paths', () => {
  const tables = fc
    .sample(fc.tuple(fc.array(someMask, { maxLength: 4 }), fc.array(someLeaf, { maxLength: 6 })), 40)
    .map(([masks, leaves]) => Buffer.from(encodeNames({ masks, leaves })));
  const input = Buffer.concat(tables.flatMap((table) => [Buffer.from(Uint32Array.of(table.length).buffer), table]));
  const seed = Math.floor(Math.random() * 2 ** 31);
  const fuzz = spawnSync(fuzzer, [String(seed), '8000'], { input, encoding: 'utf8', timeout: 100_000 });
  expect([seed, fuzz.status, fuzz.stderr]).toEqual([seed, 0, '']);
});
