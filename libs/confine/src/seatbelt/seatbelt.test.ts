// Seatbelt profiles, by an evaluator of the language that they are written in: they say what the ruleset says and what the Linux view says, whatever the
// order of their rules. No kernel of macOS was asked: the suite in tests/boundary does that where there is one.
import { mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import fc from 'fast-check';
import {
  accessAt,
  compile,
  isWithin,
  leafAt,
  readPolicy,
  type CompileInput,
  type PolicyDocument,
  type Ruleset,
} from '@nd7/policy';
import { buildView } from '../view/build.js';
import { resolvePath } from '../view/resolve.js';
import { compileSeatbelt, type SeatbeltInput } from './compile.js';
import { Evaluator, parse } from './evaluate.fixture.js';
import { quoted } from './expression.js';

const HOME = '/Users/dev';
const PROJECT = `${HOME}/code/app`;
const places = {
  home: HOME,
  project: PROJECT,
  tmp: '/private/var/folders/x/nd7-s',
  nd7Home: `${HOME}/.nd7`,
  variables: {},
};
const ruleset = (document: Omit<PolicyDocument, 'nd7'>, at: CompileInput['places'] = places): Ruleset =>
  compile({
    places: at,
    user: readPolicy(JSON.stringify({ nd7: 1, ...document }), 'policy.jsonc', 'user'),
    project: null,
    team: null,
    session: { profile: null, packs: ['claude-code'], policy: null },
    grants: [],
    files: new Map(),
  }).ruleset;
const input = (of: Ruleset, more: Partial<SeatbeltInput> = {}): SeatbeltInput => ({
  ruleset: of,
  realPath: (path) => path.replace(/^\/(tmp|var|etc)(?=\/|$)/, '/private/$1'),
  kindOf: () => 'folder',
  heldByGit: [],
  foldsCase: true,
  hide: [],
  ports: [3128],
  execExit: undefined,
  terminal: undefined,
  ...more,
});
const OPERATION = { read: 'file-read-data', write: 'file-write-create', exec: 'process-exec*' } as const;

/** Both readings of the order of rules, which must be one. */
function decider(of: SeatbeltInput) {
  const profile = compileSeatbelt(of);
  const evaluators = (['first', 'last'] as const).map((order) => new Evaluator(profile, order));
  const decide = (asked: { operation: string; path?: string; remote?: string }) => {
    const [first, last] = evaluators.map((one) => one.decide(asked));
    expect([asked, last?.allow]).toEqual([asked, first?.allow]);
    return first as { allow: boolean; noSandbox: boolean };
  };
  return {
    profile,
    decide,
    may: (right: keyof typeof OPERATION, path: string) => decide({ operation: OPERATION[right], path }).allow,
  };
}

/** Names for which the profile is stricter than the policy, and why stands in docs/limits.md. */
const isStricter = (path: string): boolean =>
  /\/\.github$|\/\.git\/(modules|worktrees)(\/[^/]+)?$|[\u200c\u200d\ufeff]|[. ]$|:/i.test(path);

const GOLDEN = join(import.meta.dirname, 'golden');
const EXAMPLES: [string, SeatbeltInput][] = [
  ['default', input(ruleset({}))],
  [
    'offline',
    input(ruleset({ extends: ['offline'], files: { write: { deny: ['./vendor'], allow: ['./vendor/ours'] } } }), {
      ports: [],
      foldsCase: false,
    }),
  ],
  [
    'granted',
    input(
      ruleset({
        sockets: { allow: ['ssh-agent', '/tmp/x.sock'] },
        files: { read: { allow: ['~/.ssh/known_hosts', './.env'] } },
      }),
      {
        execExit: '/opt/nd7/nd7-exec',
        terminal: '/dev/ttys003',
        hide: [`${HOME}/.nd7`],
        heldByGit: [`${PROJECT}/test/.env`],
      },
    ),
  ],
];

describe('a Seatbelt profile', () => {
  it.each(EXAMPLES)('of the example "%s" is what is committed', (name, of) => {
    const { text, parameters } = compileSeatbelt(of);
    const written = `${text.replaceAll(/ (?=\((?:require|subpath|literal|regex) )/g, '\n  ')}\n${JSON.stringify(parameters, null, 2)}\n`;
    const file = join(GOLDEN, `${name}.sb`);
    if (process.env['ND7_WRITE_GOLDEN'] === '1') writeFileSync(file, written);
    expect(written).toBe(readFileSync(file, 'utf8'));
  });

  it('denies all and only ever allows, and has no path in its text', () => {
    for (const [, of] of EXAMPLES) {
      const { text } = compileSeatbelt(of);
      const [version, closed, ...rules] = parse(text);
      expect([version, closed]).toEqual([
        ['version', '1'],
        ['deny', 'default'],
      ]);
      expect(rules.map((rule) => (rule as string[])[0])).toEqual(rules.map(() => 'allow'));
      expect(text).not.toMatch(/Users|\.ssh|\.aws|private/);
    }
  });

  it('connects to the ports of the proxy alone, and leaves the boundary by one program', () => {
    const { decide } = decider((EXAMPLES[2] as (typeof EXAMPLES)[2])[1]);
    const out = (remote: string) => decide({ operation: 'network-outbound', remote }).allow;
    expect([out('localhost:3128'), out('localhost:22'), out('*:443')]).toEqual([true, false, false]);
    const unix = (path: string) => decide({ operation: 'network-outbound', path }).allow;
    expect([
      unix('/private/tmp/x.sock'),
      unix('/private/var/run/docker.sock'),
      unix('/private/var/run/mDNSResponder'),
    ]).toEqual([true, false, false]);
    const run = (path: string) => decide({ operation: 'process-exec', path });
    expect(run('/opt/nd7/nd7-exec')).toMatchObject({ allow: true });
    expect(
      new Evaluator(compileSeatbelt((EXAMPLES[2] as (typeof EXAMPLES)[2])[1]), 'last').decide({
        operation: 'process-exec',
        path: '/opt/nd7/nd7-exec',
      }).noSandbox,
    ).toBe(true);
    expect(run('/bin/ls')).toEqual({ allow: true, noSandbox: false });
    for (const operation of [
      'mach-register',
      'iokit-open',
      'process-info-pidinfo',
      'system-privilege',
      'nvram-set',
      'device-camera',
      'appleevent-send',
      'lsopen',
      'job-creation',
    ])
      expect([operation, decide({ operation }).allow]).toEqual([operation, false]);
  });

  it('shows the way to what lies in a hidden folder, and not what else lies there', () => {
    const { may, decide } = decider(input(ruleset({ files: { read: { deny: ['~'] } } })));
    expect([may('read', HOME), may('read', `${HOME}/x`), may('read', `${PROJECT}/x`)]).toEqual([false, false, true]);
    const asked = (path: string) => decide({ operation: 'file-read-metadata', path }).allow;
    expect([asked(HOME), asked(`${HOME}/code`), asked(`${HOME}/other`), asked(`${PROJECT}/x`)]).toEqual([
      true,
      true,
      false,
      true,
    ]);
  });

  it('holds folders fast that lead to what is closed in them', () => {
    const { may } = decider(
      input(ruleset({ files: { write: { deny: ['./a/b/vendor'] }, read: { deny: ['./c/secret'] } } })),
    );
    for (const path of [
      PROJECT,
      `${PROJECT}/a`,
      `${PROJECT}/a/b`,
      `${PROJECT}/a/b/vendor`,
      `${PROJECT}/a/b/vendor/x`,
      `${PROJECT}/c`,
      `${PROJECT}/c/secret`,
    ])
      expect([path, may('write', path)]).toEqual([path, false]);
    for (const path of [`${PROJECT}/a/x`, `${PROJECT}/a/b/x`, `${PROJECT}/d`, `${PROJECT}/c/x`])
      expect([path, may('write', path)]).toEqual([path, true]);
  });

  it('is not led around by the case of names where the volume knows none', () => {
    const closed = ruleset({ files: { write: { deny: ['./vendor'] }, read: { deny: ['./ké'] } } });
    const there = decider(input(closed, { kindOf: () => undefined }));
    for (const name of [
      'vendor',
      'Vendor',
      'VENDOR/x',
      '.CLAUDE',
      '.Claude/x',
      '.VSCode',
      'x/.Git/HOOKS/y',
      '.ENVRC',
      '.envrc.',
      '.envrc:x',
      '.g\u200cit/hooks',
      '.clau\ufeffde',
    ])
      expect([name, there.may('write', `${PROJECT}/${name}`)]).toEqual([name, false]);
    expect(there.may('write', `${PROJECT}/vendors`)).toBe(true);
    expect(there.may('read', `${PROJECT}/KÉ`)).toBe(false);
    expect(
      decider(input(closed, { foldsCase: false, kindOf: () => undefined })).may('write', `${PROJECT}/VENDOR/x`),
    ).toBe(true);
  });

  it('lets out of a mask what is named, and nothing deeper that the mask means too', () => {
    const { may } = decider(
      input(ruleset({ masks: ['**/a/b'], files: { read: { allow: ['~/other/.env', './a/b'] } } })),
    );
    const read = (path: string): boolean => may('read', path);
    expect(
      ['~/other/.env', '~/other/.env/x', './a/b', './a/b/x'].map((path) => [
        path,
        read(path.replace('~', HOME).replace(/^\./, PROJECT)),
      ]),
    ).toEqual(['~/other/.env', '~/other/.env/x', './a/b', './a/b/x'].map((path) => [path, true]));
    for (const path of [
      `${HOME}/other/.env/.env`,
      `${HOME}/other/.env/x/.envrc`,
      `${PROJECT}/a/b/a/b`,
      `${PROJECT}/a/b/c/a/b/d`,
      `${PROJECT}/c/a/b`,
    ])
      expect([path, read(path)]).toEqual([path, false]);
  });

  it('takes hostile paths as paths', () => {
    const evil = '/Users/a")(allow default)(x "\\" ü\n(.*)+[';
    const at = { ...places, home: evil, project: `${evil}/p`, nd7Home: `${evil}/.nd7` };
    const { may, profile } = decider(input(ruleset({}, at), { hide: [`${evil}/.nd7`] }));
    expect(profile.text).not.toContain('allow default');
    expect(may('write', `${evil}/p/x`)).toBe(true);
    for (const path of [`${evil}/x`, `${evil}/p/.claude`, `${evil}/p/a/.envrc`, '/Users/a/p/x'])
      expect([path, may('write', path)]).toEqual([path, false]);
    for (const path of [`${evil}/.ssh/id`, `${evil}/p/.env`, `${evil}/.nd7/x`])
      expect([path, may('read', path)]).toEqual([path, false]);
    expect(() =>
      compileSeatbelt(
        input({
          ...ruleset({}),
          sockets: [{ path: '/a\0b', name: 'x', warning: null, source: ruleset({}).layers[0] as never }],
        }),
      ),
    ).toThrow(RangeError);
    expect(() => quoted('a\nb')).toThrow(RangeError);
  });

  const name = fc.constantFrom(
    'a',
    'b',
    '.env',
    '.env.example',
    '.envx',
    '.vscode',
    '.claude',
    '.git',
    '.github',
    'hooks',
    'config',
    'modules',
    'node_modules',
    'node_module',
    'AGENTS.md',
    'vendor',
    '.ssh',
    'x.pfx',
    'x.code-workspace',
    '.ENVRC',
    '.vscode.',
    'é',
    '(a)',
    'store',
    'plugins',
  );
  const base = fc.constantFrom(PROJECT, HOME, '/', '/usr', `${HOME}/.npm`, `${HOME}/.claude`, `${HOME}/other`);
  const path = fc
    .tuple(base, fc.array(name, { maxLength: 5 }))
    .map(([folder, names]) => `${folder === '/' ? '' : folder}${names.map((one) => `/${one}`).join('')}` || '/');
  const rule = path.filter((one) => one !== '/').map((one) => one.replace(PROJECT, '.').replace(HOME, '~'));
  const rules = fc.record({ allow: fc.array(rule, { maxLength: 3 }), deny: fc.array(rule, { maxLength: 3 }) });
  const document = fc.record({
    extends: fc.constantFrom(['default'], ['offline'], ['secrets']),
    files: fc.record({ read: rules, write: rules, exec: rules }),
    masks: fc.array(fc.constantFrom('**/b', '**/a/b', '**/x*', 'a/*', '**/*.pfx'), { maxLength: 2 }),
    protect: fc.record({
      refuse: fc.array(fc.constantFrom('vendor', 'a/b', './b', '~/.npm/a', 'git:b', 'e*'), { maxLength: 3 }),
      record: fc.array(fc.constantFrom('./b/a', 'é'), { maxLength: 1 }),
    }),
  });

  it('allows what the policy allows, never more, and less only where that is said', () => {
    fc.assert(
      fc.property(
        document,
        fc.array(path, { minLength: 10, maxLength: 30 }),
        fc.boolean(),
        (policy, paths, foldsCase) => {
          const of = ruleset({ ...policy, extends: [...policy.extends] });
          const given = input(of, { foldsCase });
          const { may } = decider(given);
          const held = compileSeatbelt(given);
          expect(held.text.length).toBeLessThan(400_000);
          for (const one of paths) {
            const access = accessAt(of, one);
            const leaf = leafAt(of.leaves, one);
            const isRefused =
              leaf?.treatment === 'refuse' || (leaf?.treatment === 'mediate' && leaf.mediator !== 'claude-state');
            const wanted = { read: access.read, write: access.write && !isRefused, exec: access.exec };
            for (const right of ['read', 'write', 'exec'] as const) {
              const got = may(right, one);
              if (got && !wanted[right]) expect([right, one, 'allowed']).toEqual([right, one, 'refused']);
              // Folders that are held fast, names of git's and GitHub's own folders, places let out of masks and leaves of several components.
              const isHeld =
                right === 'write' &&
                (isStricter(one) ||
                  of.leaves.some(({ pattern }) => pattern.split('/').slice(0, -1).includes(basename(one))) ||
                  of.files.some(({ path: node }) => isWithin(node, one)) ||
                  of.leaves.some(({ under }) => under.some((at) => isWithin(at, one))));
              const hasWildcards =
                of.masks.some(({ except, pattern }) => except.length > 0 && pattern.includes('*')) &&
                /example/.test(one);
              const isRecorded = leaf?.treatment === 'record';
              const letOut = [...of.masks, ...of.leaves].some(({ exceptPaths }) =>
                exceptPaths.some((at) => isWithin(one, at)),
              );
              if (!got && wanted[right] && !isHeld && !hasWildcards && !letOut && !isRecorded)
                expect([right, one, 'refused']).toEqual([right, one, 'allowed']);
            }
          }
        },
      ),
      { numRuns: 40 },
    );
  }, 120_000);

  it('agrees with the Linux view of the same disk', () => {
    const base = realpathSync(mkdtempSync(join(tmpdir(), 'nd7-seatbelt-')));
    try {
      const at = {
        home: join(base, 'home'),
        project: join(base, 'home/p'),
        tmp: join(base, 'tmp'),
        nd7Home: join(base, 'home/.nd7'),
        variables: {},
      };
      const files = [
        'p/a/f',
        'p/.vscode/s',
        'p/.env',
        'p/node_modules/x/.vscode/s',
        'p/vendor/v',
        'p/secret/s',
        '.ssh/id',
        '.ssh/known_hosts',
        '.npm/c',
        'other/x',
        '.aws/credentials',
        '.nd7/k',
        '.config/gh/hosts.yml',
      ];
      for (const file of files) {
        mkdirSync(dirname(join(at.home, file)), { recursive: true });
        writeFileSync(join(at.home, file), 'x');
      }
      mkdirSync(at.tmp);
      symlinkSync(at.home, join(base, 'link'));
      const of = ruleset(
        {
          files: {
            write: { deny: ['./vendor', '~'] },
            read: { deny: ['./secret', join(base, 'link/other')], allow: ['~/.ssh/known_hosts'] },
          },
        },
        at,
      );
      const view = buildView(of, [at.nd7Home]);
      const { may } = decider(
        input(of, {
          realPath: (path) => resolvePath(path)?.path ?? path,
          hide: [at.nd7Home],
          heldByGit: view.found.held,
        }),
      );
      for (const file of files) {
        const real = join(at.home, file);
        const state = view.stateOf(real);
        expect([file, may('read', real)]).toEqual([file, state !== 'hidden']);
        expect([file, may('write', real)]).toEqual([file, state === 'writable']);
      }
    } finally {
      rmSync(base, { recursive: true, force: true });
    }
  });
});
