// Random policies over a small world, and the slow, plain reading of them that the compiled rules are compared with.
import type { Host } from './host.js';
import { parseHost } from './host.js';
import fc from 'fast-check';
import type { PolicyDocument } from './document.js';
import type { CompileInput } from './parts.js';
import type { Places } from './path.js';
import { builtinPolicy } from './read.js';
import type { PolicyFile } from './read.js';
import type { Right } from './files.js';

export const PLACES: Places = { home: '/h', project: '/h/p', tmp: '/t', nd7Home: '/h/.nd7', variables: {} };

const NAMES = ['p', 'a', 'b', '.env', 'A'];
const writtenPath = fc.oneof(
  fc.constantFrom(
    '/',
    '~',
    '.',
    '$TMP',
    '~/p',
    '/h',
    '/h/p/a',
    './a',
    './a/b',
    './.env',
    '~/a',
    '~/.nd7',
    '$ND7_HOME/x',
  ),
  fc
    .tuple(fc.constantFrom('', '~', '.'), fc.array(fc.constantFrom(...NAMES), { minLength: 1, maxLength: 3 }))
    .map(([base, names]) => [base, ...names].join('/')),
);

/** Absolute paths in and around the places of the world. */
export const somePath: fc.Arbitrary<string> = fc
  .tuple(
    fc.constantFrom('/h', '/h/p', '/h/.nd7', '/t', '/x', ''),
    fc.array(fc.constantFrom(...NAMES), { maxLength: 4 }),
  )
  .map(([base, names]) => [base, ...names].join('/') || '/');

const few = <T>(item: fc.Arbitrary<T>): fc.Arbitrary<T[]> => fc.array(item, { maxLength: 4 });
const rules = fc.record(
  { allow: few(writtenPath), deny: few(writtenPath), only: few(writtenPath) },
  { requiredKeys: [] },
);
// A ceiling is rare in life, and often enough here.
const pathRules = fc
  .tuple(rules, fc.integer({ min: 0, max: 3 }))
  .map(([{ only, ...rest }, dice]) => (dice === 0 && only !== undefined ? { ...rest, only } : rest));

const host = fc.oneof(
  fc.constantFrom(
    '*',
    'a.test',
    '*.a.test',
    'b.a.test',
    '*.b.a.test',
    '*.test',
    '192.0.2.1',
    '10.0.0.1',
    '[2001:db8::1]',
  ),
  fc
    .tuple(
      fc.constantFrom('*', 'a.test', '*.a.test', 'b.a.test'),
      fc.constantFrom('443', '1-1000', '400-500', '*', '80,443', '420-520'),
    )
    .map((parts) => parts.join(':')),
);
const hostEntry = fc.oneof(host, fc.record({ host, raw: fc.boolean(), privateAddresses: fc.boolean() }));
const masks = few(
  fc.oneof(
    fc.constantFrom('**/.env*', 'a', '**/b', 'a/b', '*'),
    fc.record(
      {
        pattern: fc.constantFrom('**/.env*', '**/a', 'b'),
        under: few(writtenPath),
        except: few(fc.constantFrom('**/b', '.env', 'a/*')),
        exceptTracked: fc.boolean(),
      },
      { requiredKeys: ['pattern'] },
    ),
  ),
);
const leafName = fc.constantFrom('a', 'b', 'a/b', '.env', '*.x', './a', '~/b', '/h/p/a/b', 'git:hooks', 'A');

export const someDocument: fc.Arbitrary<PolicyDocument> = fc
  .record(
    {
      files: fc.record({ read: pathRules, write: pathRules, exec: pathRules }, { requiredKeys: [] }),
      masks,
      protect: fc.record(
        { refuse: few(leafName), record: few(leafName), release: few(leafName) },
        { requiredKeys: [] },
      ),
      network: fc.record(
        {
          allow: few(hostEntry),
          deny: few(hostEntry),
          only: few(hostEntry),
          listen: few(fc.constantFrom(3000, '3000-3010')),
          loopback: few(fc.constantFrom(5432)),
        },
        { requiredKeys: [] },
      ),
      sockets: fc.record(
        { allow: few(fc.constantFrom('docker', '/s/a', '/s/b')), deny: few(fc.constantFrom('docker', '/s/a')) },
        { requiredKeys: [] },
      ),
      environment: fc.record(
        { pass: few(fc.constantFrom('*', 'A', 'B_KEY', 'C*')), unset: few(fc.constantFrom('*_KEY', 'A', 'C*', '*')) },
        { requiredKeys: [] },
      ),
      weakestTier: fc.constantFrom('T1' as const, 'T2' as const, 'T3' as const),
      privateTmp: fc.boolean(),
      recording: fc.constantFrom('required' as const, 'best-effort' as const),
      patterns: fc.constantFrom('strict' as const, 'names' as const),
    },
    { requiredKeys: [] },
  )
  .map((document) => ({ nd7: 1, extends: [], ...document }));

const file =
  (name: string) =>
  (document: PolicyDocument): PolicyFile =>
    builtinPolicy(name, document);

/** Any layers, with the default profile below them or nothing. */
export const someInput: fc.Arbitrary<CompileInput> = fc
  .record({
    user: someDocument.map(file('user')),
    base: fc.boolean(),
    project: fc.option(fc.record({ policy: someDocument.map(file('project')), trusted: fc.boolean() })),
    team: fc.option(someDocument.map(file('team'))),
    session: fc.option(someDocument.map(file('session'))),
    grants: fc.array(someDocument.map(file('grant')), { maxLength: 1 }),
  })
  .map(({ user, base, project, team, session, grants }) => ({
    places: PLACES,
    user: { ...user, document: { ...user.document, extends: base ? ['offline'] : [] } },
    project,
    team,
    session: { profile: null, packs: [], policy: session },
    grants,
    files: new Map(),
  }));

/** The same with every list of every policy in another order. */
export function turned(input: CompileInput): CompileInput {
  const turn = (value: unknown): unknown => {
    if (Array.isArray(value)) return [...value].reverse().map(turn);
    if (typeof value !== 'object' || value === null) return value;
    return Object.fromEntries(
      Object.entries(value)
        .reverse()
        .map(([key, item]) => [key, turn(item)]),
    );
  };
  const policy = (file: PolicyFile): PolicyFile => ({ ...file, document: turn(file.document) as PolicyDocument });
  return {
    ...input,
    user: input.user && policy(input.user),
    team: input.team && policy(input.team),
    project: input.project && { ...input.project, policy: policy(input.project.policy) },
    session: { ...input.session, policy: input.session.policy && policy(input.session.policy) },
    grants: input.grants.map(policy),
  };
}

// The plain reading. It walks every rule for every question and shares nothing with the compiler but the documents.

interface Voice {
  document: PolicyDocument;
  /** Nearer to the person is higher. */
  near: number;
}

const absolute = (written: string): string[] =>
  written
    .replace(/^~/, PLACES.home)
    .replace(/^\.(?=\/|$)/, PLACES.project)
    .replace(/^\$TMP/, PLACES.tmp)
    .replace(/^\$ND7_HOME/, PLACES.nd7Home)
    .split('/')
    .filter((part) => part !== '' && part !== '.');

const covers = (rule: string[], path: string[]): boolean =>
  rule.length <= path.length && rule.every((part, i) => part === path[i]);

/** Verdict of some voices on a path: true, false, or undefined where none of them says anything. */
function hear(voices: Voice[], right: Right, path: string[], only = false): boolean | undefined {
  const said: { length: number; near: number; allow: boolean }[] = [];
  for (const { document, near } of voices) {
    const files = document.files ?? {};
    const lists: [string[] | undefined, boolean][] = only
      ? [[files[right]?.only, true]]
      : [
          [files[right]?.allow, true],
          [files[right]?.deny, false],
          ...(right === 'read' ? [[files.write?.allow, true] as [string[] | undefined, boolean]] : []),
        ];
    for (const [list, allow] of lists)
      for (const written of list ?? []) {
        const rule = absolute(written);
        if (covers(rule, path)) said.push({ length: rule.length, near, allow });
      }
  }
  said.sort((a, b) => b.length - a.length || b.near - a.near || Number(a.allow) - Number(b.allow));
  return said[0]?.allow;
}

/** Whether a right is had on a path by the file rules of an input whose policies extend nothing. Masks apart. */
export function plainlyAllowed(input: CompileInput, right: Right, path: string): boolean {
  const parts = path.split('/').filter((part) => part !== '');
  const near = { team: 1, project: 2, user: 3, session: 4, grant: 5 };
  const voice = (file: PolicyFile | null | undefined, level: number): Voice[] =>
    file ? [{ document: file.document, near: level }] : [];
  const [team, user] = [voice(input.team, near.team), voice(input.user, near.user)];
  const project = voice(input.project?.policy, near.project);
  const now = [
    ...voice(input.session.policy, near.session),
    ...input.grants.flatMap((grant) => voice(grant, near.grant)),
  ];
  const pool = [...team, ...(input.project?.trusted === true ? project : []), ...user, ...now];
  const has = (asked: Right): boolean => {
    if (hear(pool, asked, parts) !== true) return false;
    if (covers(absolute('$ND7_HOME'), parts) && asked === 'read') return false;
    if (hear(team, asked, parts) === false) return false;
    if (project.length > 0 && hear([...project, ...now], asked, parts) === false) return false;
    // Ceilings: what a session or grant says goes over all but the team's.
    for (const one of [...new Set([...pool, ...team, ...project])]) {
      if (one.document.files?.[asked]?.only === undefined) continue;
      const over = team.includes(one) ? [] : now.filter((other) => other.near > one.near);
      const said = [
        ...(one.document.files[asked].only ?? []).map(absolute),
        ...over.flatMap(({ document }) =>
          [
            ...(document.files?.[asked]?.allow ?? []),
            ...(asked === 'read' ? (document.files?.write?.allow ?? []) : []),
          ].map(absolute),
        ),
      ];
      if (!said.some((rule) => covers(rule, parts))) return false;
    }
    return true;
  };
  return has(right) && has('read');
}

/** Hosts and ports that rules of these policies may mean. */
export const askedHosts = [
  'a.test',
  'b.a.test',
  'c.b.a.test',
  'x.test',
  'other.example',
  '192.0.2.1',
  '10.0.0.1',
  '2001:db8::1',
].map((text) => parseHost(text) as Host);
export const askedPorts = [1, 80, 443, 450, 510, 65_535];
