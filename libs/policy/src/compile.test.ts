import fc from 'fast-check';
import { compile, rulesetHash } from './compile.js';
import { accessAt, decideHost, nodeAt, writableRoots } from './decide.js';
import { RIGHTS } from './files.js';
import { leafAt } from './names.js';
import { comparePaths, prefixesOf } from './path.js';
import {
  askedHosts,
  askedPorts,
  PLACES,
  plainlyAllowed,
  someDocument,
  someInput,
  somePath,
  turned,
} from './policies.fixture.js';
import type { PolicyDocument } from './document.js';
import { builtinPolicy, readPolicy } from './read.js';
import type { CompileInput } from './parts.js';
import type { Ruleset } from './ruleset.js';
import { passes } from './environment.js';

const rulesetOf = (input: CompileInput): Ruleset => compile(input).ruleset;
const variables = ['A', 'B_KEY', 'C1', 'D'];
const STRICT = { refuse: 3, mediate: 2, record: 1 };

describe('the compiled rules', () => {
  it('say of every path what a plain reading of the policies says', () => {
    fc.assert(
      fc.property(
        someInput.map((input) => ({
          ...input,
          user: input.user && { ...input.user, document: { ...input.user.document, extends: [] } },
        })),
        fc.array(somePath, { minLength: 5, maxLength: 20 }),
        (input, paths) => {
          const ruleset = rulesetOf(input);
          for (const path of paths)
            for (const right of RIGHTS)
              expect([path, right, nodeAt(ruleset, path).access[right]]).toEqual([
                path,
                right,
                plainlyAllowed(input, right, path),
              ]);
        },
      ),
      { numRuns: 60 },
    );
  });

  it('do not depend on the order of rules in a policy', () => {
    fc.assert(
      fc.property(someInput, fc.array(somePath, { maxLength: 10 }), (input, paths) => {
        const [one, other] = [rulesetOf(input), rulesetOf(turned(input))];
        expect(other.files).toEqual(one.files.map((node) => ({ ...node, why: expect.anything() as never })));
        for (const path of paths) expect(accessAt(other, path)).toEqual(accessAt(one, path));
        for (const path of paths)
          expect(leafAt(other.leaves, path)?.treatment).toBe(leafAt(one.leaves, path)?.treatment);
        for (const host of askedHosts)
          for (const port of askedPorts) {
            const [a, b] = [decideHost(one.network, host, port), decideHost(other.network, host, port)];
            expect([b.allow, b.raw, b.privateAddresses]).toEqual([a.allow, a.raw, a.privateAddresses]);
          }
        expect(other.sockets.map(({ path }) => path)).toEqual(one.sockets.map(({ path }) => path));
        for (const name of variables) expect(passes(other.environment, name)).toBe(passes(one.environment, name));
      }),
      { numRuns: 40 },
    );
  });

  it('stand in one order: parents before children, every path once, none that changes nothing', () => {
    fc.assert(
      fc.property(someInput, (input) => {
        const { files } = rulesetOf(input);
        expect(files[0]?.path).toBe('/');
        for (let i = 1; i < files.length; i++) expect(comparePaths(files[i - 1]!.path, files[i]!.path)).toBeLessThan(0);
        const byPath = new Map(files.map((node) => [node.path, node]));
        for (const { path, access } of files.slice(1)) {
          const parent = prefixesOf(path)
            .slice(0, -1)
            .reverse()
            .map((prefix) => byPath.get(prefix))
            .find((node) => node !== undefined);
          expect(parent?.access).not.toEqual(access);
          if (!access.read) expect(access).toEqual({ read: false, write: false, exec: false });
        }
      }),
      { numRuns: 40 },
    );
  });

  it('are the same, to the hash, for the same input', () => {
    fc.assert(
      fc.property(someInput, (input) => {
        expect(rulesetHash(rulesetOf(input))).toBe(rulesetHash(rulesetOf(input)));
      }),
      { numRuns: 20 },
    );
  });
});

/** That `narrow` allows nothing which `wide` does not. */
function expectNoWider(narrow: Ruleset, wide: Ruleset, paths: readonly string[]): void {
  for (const path of paths) {
    const [less, more] = [accessAt(narrow, path), accessAt(wide, path)];
    for (const right of RIGHTS) if (less[right]) expect([path, right, more[right]]).toEqual([path, right, true]);
    const [held, holds] = [leafAt(wide.leaves, path), leafAt(narrow.leaves, path)];
    if (held !== undefined && less.write)
      expect([path, STRICT[holds?.treatment ?? 'record'] >= STRICT[held.treatment]]).toEqual([path, true]);
  }
  for (const host of askedHosts)
    for (const port of askedPorts) {
      const [less, more] = [decideHost(narrow.network, host, port), decideHost(wide.network, host, port)];
      expect([
        host,
        port,
        less.allow && !more.allow,
        less.raw && !more.raw,
        less.privateAddresses && !more.privateAddresses,
      ]).toEqual([host, port, false, false, false]);
    }
  const subset = (a: readonly unknown[], b: readonly unknown[]): void => {
    const known = new Set(b.map((item) => JSON.stringify(item)));
    expect(a.filter((item) => !known.has(JSON.stringify(item)))).toEqual([]);
  };
  subset(
    narrow.sockets.map(({ path }) => path),
    wide.sockets.map(({ path }) => path),
  );
  for (const kind of ['listen', 'loopback'] as const) subset(narrow.network[kind], wide.network[kind]);
  subset(narrow.environment.set, wide.environment.set);
  for (const name of variables)
    expect([name, passes(narrow.environment, name) && !passes(wide.environment, name)]).toEqual([name, false]);
  subset(wide.required, narrow.required);
  expect(narrow.weakestTier <= wide.weakestTier).toBe(true);
  expect(narrow.privateTmp || !wide.privateTmp).toBe(true);
  expect(narrow.recording === 'required' || wide.recording === 'best-effort').toBe(true);
  expect(narrow.patterns === 'strict' || wide.patterns === 'names').toBe(true);
  for (const key of ['makeFolders', 'seeds'] as const) subset(narrow[key], wide[key]);
  subset(narrow.network.credentials, wide.network.credentials);
}

describe('an untrusted project', () => {
  it('never widens anything', () => {
    fc.assert(
      fc.property(
        someInput,
        someDocument,
        fc.array(somePath, { minLength: 5, maxLength: 20 }),
        (input, document, paths) => {
          const without = rulesetOf({ ...input, project: null });
          const narrowed = rulesetOf({
            ...input,
            project: { policy: builtinPolicy('project', document), trusted: false },
          });
          expectNoWider(narrowed, without, paths);
        },
      ),
      { numRuns: 60 },
    );
  });

  it('is told what it asks for in vain', () => {
    const policy = builtinPolicy('project', {
      nd7: 1,
      files: { write: { allow: ['~/other'] } },
      network: { allow: ['a.test'] },
      environment: { set: { X: '1' } },
      seeds: [{ from: '~/.ssh/id', to: './x' }],
      credentials: [{ name: 'x', hosts: ['a.test'], way: 'terminate', from: { command: ['x'] } }],
    });
    const { ruleset, notes } = compile({ ...defaults, project: { policy, trusted: false } });
    expect(notes.filter(({ kind }) => kind === 'asks').map(({ source }) => source.text)).toEqual([
      'files.write.allow: ~/other',
      'network.allow: a.test',
      'environment.set.X: X',
    ]);
    expect(notes.filter(({ kind }) => kind === 'without-effect').map(({ text }) => text)).toEqual([
      '"credentials" has an effect in your own policy only',
      '"seeds" has an effect in your own policy only',
    ]);
    expect(ruleset.network.credentials).toEqual([]);
    expect(ruleset.seeds).toEqual([]);
  });
});

describe('what has no effect', () => {
  it('is refused all the same where it means nothing', () => {
    for (const document of [
      { network: { allow: ['a..test'] } },
      { network: { listen: ['9-8'] } },
      { sockets: { allow: ['dokcer'] } },
      { files: { write: { allow: ['src'] } } },
    ])
      expect(() =>
        compile({
          ...defaults,
          project: { policy: builtinPolicy('project', { nd7: 1, ...document }), trusted: false },
        }),
      ).toThrow(/"(a\.\.test|9-8|dokcer|src)"/);
  });
});

describe('a hostile project’s policy', () => {
  const many = (count: number, item: (i: number) => string): string[] =>
    Array.from({ length: count }, (_, i) => item(i));
  const nested = (depth: number): string => Array<string>(depth).fill('a').join('/');
  const under = many(32, (i) => ['.', ...Array<string>(i).fill('a')].join('/'));
  it.each<[string, Omit<PolicyDocument, 'nd7'>]>([
    [
      'long names and a pattern that nearly matches, below many folders',
      {
        files: { read: { allow: many(25, (i) => `./${nested(31)}/${'a'.repeat(900)}${i}`) } },
        masks: many(15, (i) => `**/a*${'a'.repeat(900)}b*${i}`).map((pattern) => ({ pattern, under })),
      },
    ],
    [
      'many masks, many exceptions, many paths',
      {
        files: { read: { allow: many(700, (i) => `./${nested(20)}/x${i}`) } },
        masks: many(62, (i) => `**/a/**/a/**/a/**/x${i % 10}*`).map((pattern) => ({
          pattern,
          except: many(7, (k) => `**/a/**/a/**/b${k}`),
        })),
      },
    ],
    [
      'rules about many paths',
      {
        files: {
          read: { allow: many(500, (i) => `./${nested(9)}/${i}`), deny: many(500, (i) => `./${nested(9)}/${i}`) },
          write: { allow: many(500, (i) => `./${nested(9)}/${i}`), deny: many(500, (i) => `./${nested(9)}/${i}`) },
        },
      },
    ],
    ['few paths of many components', { files: { read: { deny: many(60, (i) => `./${nested(500)}/${i}`) } } }],
    [
      'many names and hosts',
      {
        protect: { refuse: many(900, (i) => `a*/a*/${i}`), record: many(900, (i) => `./a/a/${i}`) },
        network: { deny: many(900, (i) => `*.a${i}.test:*`) },
        environment: { unset: many(900, (i) => `*A*B*${i}`) },
      },
    ],
  ])('cannot hold up the start for long: %s', (_what, document) => {
    const text = JSON.stringify({ nd7: 1, ...document });
    const start = process.cpuUsage();
    const policy = readPolicy(text, '/h/p/.nd7/policy.jsonc', 'project');
    const { ruleset } = compile({ ...defaults, project: { policy, trusted: false } });
    for (let i = 0; i < 100; i++) {
      accessAt(ruleset, `/h/p/${nested(20)}/x${i}`);
      leafAt(ruleset.leaves, `/h/p/${nested(20)}/x${i}`);
    }
    expect(process.cpuUsage(start).user / 1e6).toBeLessThan(30);
  });

  it('is refused where its masks would be compared too often', () => {
    const masks = many(20, (i) => `a${i}`).map((pattern) => ({ pattern, under }));
    const policy = builtinPolicy('project', { nd7: 1, masks });
    expect(() => compile({ ...defaults, project: { policy, trusted: false } })).toThrow(/At most 500 in one policy/);
  });
});

describe('a team’s policy', () => {
  it('is loosened by nobody: what it denies is denied, whoever allows it', () => {
    fc.assert(
      fc.property(
        someInput,
        someDocument,
        fc.array(somePath, { minLength: 5, maxLength: 20 }),
        (input, document, paths) => {
          const team = builtinPolicy('team', document);
          const all = rulesetOf({ ...input, team });
          // The team alone over everything: what is missing here the team has taken.
          const open = builtinPolicy('user', {
            nd7: 1,
            extends: [],
            files: { read: { allow: ['/'] }, write: { allow: ['/'] }, exec: { allow: ['/'] } },
            network: { allow: [{ host: '*:*', raw: true, privateAddresses: true }] },
          });
          const alone = rulesetOf({
            ...input,
            user: open,
            project: null,
            session: { profile: null, packs: [], policy: null },
            grants: [],
            team,
          });
          for (const path of paths)
            for (const right of RIGHTS)
              if (accessAt(all, path)[right])
                expect([path, right, accessAt(alone, path)[right]]).toEqual([path, right, true]);
          for (const host of askedHosts.filter(({ kind }) => kind === 'name'))
            for (const port of askedPorts)
              if (decideHost(all.network, host, port).allow)
                expect([host, port, decideHost(alone.network, host, port).allow]).toEqual([host, port, true]);
          for (const { property } of alone.required)
            expect(all.required.map((row) => row.property)).toContain(property);
          if (document.weakestTier !== undefined) expect(all.weakestTier <= document.weakestTier).toBe(true);
          if (document.recording === 'required') expect(all.recording).toBe('required');
        },
      ),
      { numRuns: 60 },
    );
  });
});

describe('nd7’s own home', () => {
  it('is hidden whatever anybody allows', () => {
    fc.assert(
      fc.property(someInput, somePath, (input, path) => {
        expect(accessAt(rulesetOf(input), `/h/.nd7${path === '/' ? '' : path}`)).toEqual({
          read: false,
          write: false,
          exec: false,
        });
      }),
      { numRuns: 40 },
    );
  });
});

const defaults: CompileInput = {
  places: PLACES,
  user: null,
  project: null,
  team: null,
  session: { profile: null, packs: [], policy: null },
  grants: [],
  files: new Map(),
};

describe('the roots of what may be written', () => {
  it('are the outermost writable folders', () => {
    const roots = writableRoots(rulesetOf(defaults));
    expect(roots).toContain('/h/p');
    expect(roots).toContain('/t');
    expect(roots).not.toContain('/h');
  });
});
