import fc from 'fast-check';
import { compile } from './compile.js';
import { accessAt, decideHost } from './decide.js';
import { diff } from './diff.js';
import { passes } from './environment.js';
import { explain } from './explain.js';
import { RIGHTS } from './files.js';
import { parseHost } from './host.js';
import type { Host } from './host.js';
import { HOME, PROJECT, base, input, withUser } from './machine.fixture.js';
import { leafAt } from './names.js';
import { someDocument, someInput, somePath } from './policies.fixture.js';
import { builtinPolicy } from './read.js';
import type { Ruleset } from './ruleset.js';

const hosts = ['a.test', 'b.a.test', 'x.test', '192.0.2.1'].map((text) => parseHost(text) as Host);

/** Something that `after` allows and `before` does not. */
function widened(before: Ruleset, after: Ruleset, paths: readonly string[]): unknown[] {
  return [
    ...paths.flatMap((path) =>
      RIGHTS.filter((right) => accessAt(after, path)[right] && !accessAt(before, path)[right]).map((right) => [
        path,
        right,
      ]),
    ),
    ...paths.filter(
      (path) =>
        leafAt(before.leaves, path)?.treatment === 'refuse' && leafAt(after.leaves, path)?.treatment !== 'refuse',
    ),
    ...hosts.flatMap((host) =>
      [80, 443, 450].filter(
        (port) => decideHost(after.network, host, port).allow && !decideHost(before.network, host, port).allow,
      ),
    ),
    ...['A', 'B_KEY', 'C1'].filter((name) => passes(after.environment, name) && !passes(before.environment, name)),
    ...after.sockets.filter(({ path }) => !before.sockets.some((socket) => socket.path === path)),
  ];
}

describe('diff', () => {
  it('of a ruleset and itself is empty', () => {
    fc.assert(
      fc.property(someInput, (some) => {
        expect(diff(compile(some).ruleset, compile(some).ruleset)).toEqual([]);
      }),
      { numRuns: 30 },
    );
  });

  it('says of everything that comes to be allowed that it widens, and of everything that ceases to be that it narrows', () => {
    const some = fc.oneof(
      someInput,
      someInput.map((one) => ({
        ...one,
        project: null,
        team: null,
        session: { ...one.session, policy: null },
        grants: [],
      })),
    );
    fc.assert(
      fc.property(
        some,
        fc.option(someDocument),
        fc.array(somePath, { minLength: 5, maxLength: 15 }),
        (one, document, paths) => {
          const other = document === null ? { ...one, grants: [] } : { ...one, user: builtinPolicy('user', document) };
          const [before, after] = [compile(one).ruleset, compile(other).ruleset];
          const changes = diff(before, after);
          if (!changes.some(({ widens }) => widens)) expect(widened(before, after, paths)).toEqual([]);
          if (!changes.some(({ narrows }) => narrows)) expect(widened(after, before, paths)).toEqual([]);
        },
      ),
      { numRuns: 60 },
    );
  });

  it('of an untrusted project’s policy has nothing that widens; of its going, nothing that narrows', () => {
    fc.assert(
      fc.property(
        someInput,
        someDocument,
        fc.array(somePath, { minLength: 5, maxLength: 15 }),
        (some, document, paths) => {
          const without = compile({ ...some, project: null }).ruleset;
          const narrowed = compile({
            ...some,
            project: { policy: builtinPolicy('project', document), trusted: false },
          }).ruleset;
          const [come, gone] = [diff(without, narrowed), diff(narrowed, without)];
          expect(come.filter(({ widens }) => widens)).toEqual([]);
          expect(gone.filter(({ narrows }) => narrows)).toEqual([]);
          expect(gone.map(({ what, widens }) => [what, widens]).sort()).toEqual(
            come.map(({ what, narrows }) => [what, narrows]).sort(),
          );
          if (widened(narrowed, without, paths).length > 0) expect(gone).not.toEqual([]);
        },
      ),
      { numRuns: 40 },
    );
  });

  it('tells the rules that changed, not everything below them', () => {
    const after = withUser({
      files: { write: { allow: ['~/other'] }, read: { deny: ['~/notes'] } },
      network: { allow: ['a.test'] },
      recording: 'best-effort',
    });
    const changes = diff(base, after).filter(({ about }) => about !== 'leaf');
    expect(
      changes.map(({ about, what, before, after: now, widens, narrows }) => [
        about,
        what,
        before,
        now,
        widens,
        narrows,
      ]),
    ).toEqual([
      ['file', `${HOME}/notes`, 'r-x', '---', false, true],
      ['file', `${HOME}/other`, 'r-x', 'rwx', true, false],
      ['host', 'a.test:443', null, 'allowed', true, true],
      ['setting', 'recording', 'required', 'best-effort', true, false],
    ]);
    expect(changes[1]?.source).toMatchObject({ layer: 'user', text: 'files.write.allow: ~/other' });
  });
});

describe('explain', () => {
  it('has a statement for everything that the ruleset makes hold', () => {
    const ruleset = compile({
      ...input,
      user: builtinPolicy('user', {
        nd7: 1,
        network: { listen: [3000], only: ['github.com'] },
        sockets: { allow: ['docker'] },
      }),
    }).ruleset;
    const sections = new Map(explain(ruleset).map(({ title, statements }) => [title, statements]));
    const count = (title: string): number =>
      [...sections]
        .filter(([name]) => name.startsWith(title))
        .reduce((sum, [, statements]) => sum + statements.length, 0);
    expect(count('Files: ')).toBe(ruleset.files.length);
    expect(count('Names that are masked')).toBe(ruleset.masks.length);
    expect(count('Names that are not') + count('Files whose') + count('Names whose')).toBe(ruleset.leaves.length);
    expect(count('Network: hosts')).toBe(ruleset.network.hosts.length);
    expect(count('Ports')).toBe(1);
    expect(count('Sockets')).toBe(2);
    expect(sections.get('Network: who must agree besides')?.map(({ what, text }) => `${what} ${text}`)).toEqual([
      'github.com:443 agrees',
      'every other host user user refuses',
    ]);
    expect(sections.get('Files: what may be done from this path on')).toContainEqual(
      expect.objectContaining({ what: PROJECT, text: 'rwx' }),
    );
    expect(
      explain(ruleset)
        .flatMap(({ statements }) => statements)
        .filter(({ what, text }) => what === '' || text === ''),
    ).toEqual([]);
  });
});
