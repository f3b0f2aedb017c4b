import { blake3Hex } from '@nd7/blake3';
import { utf8 } from '@nd7/entry';
import { PolicyError } from './failure.js';
import type { PolicyDocument } from './document.js';
import { compileEnvironment } from './environment.js';
import { compileFiles, everyPart, expandAt, withoutRepeats } from './files.js';
import { compileLeaves, compileMasks } from './names.js';
import { partsOf } from './parts.js';
import type { CompileInput, Part, Parts } from './parts.js';
import { isNormal, isWithin } from './path.js';
import type { Places } from './path.js';
import { compileNetwork, compileSockets, mayHoldSecrets } from './reach.js';
import type { Property, Ruleset, Source, Sourced, Tier } from './ruleset.js';

/** Something a person should know about a policy that is not wrong. */
export interface Note {
  /**
   * `asks`: an untrusted project's policy allows something; that has no effect, and says what the project would like.
   * `without-effect`: it stands where it can do nothing. `wide`: it allows more than its author may think.
   */
  kind: 'asks' | 'without-effect' | 'wide';
  text: string;
  source: Source;
}

/**
 * Compiles the policies of one session. Throws `PolicyError` for what cannot be meant: a place that is no path, a name nobody knows, a
 * rule that does not parse. The same input gives the same ruleset, whatever the order of rules in a file.
 */
export function compile(input: CompileInput): { ruleset: Ruleset; notes: Note[] } {
  const { places } = input;
  checkPlaces(places);
  const parts = partsOf(input);
  const reasons = compileFiles(parts, places);
  const ruleset: Ruleset = {
    version: 1,
    home: places.home,
    project: places.project,
    tmp: places.tmp,
    files: withoutRepeats(reasons),
    reasons,
    masks: compileMasks(parts, places),
    leaves: compileLeaves(parts, places),
    makeFolders: foldersToMake(parts, places),
    seeds: parts.pool
      .filter(mayHoldSecrets)
      .flatMap((part) =>
        (part.document.seeds ?? []).map(({ from, to }, i) => {
          const source = part.source(['seeds', i], `${from} to ${to}`);
          return { from: expandAt(from, places, source), to: expandAt(to, places, source), source };
        }),
      )
      .filter(({ from, to }) => from !== to),
    sockets: compileSockets(parts, places),
    network: compileNetwork(parts, places),
    environment: compileEnvironment(parts, places),
    privateTmp: setting(parts, 'privateTmp', true, (a, b) => a || b),
    patterns: setting<Ruleset['patterns']>(parts, 'patterns', 'names', (a, b) => (a === 'strict' ? a : b)),
    weakestTier: setting<Tier>(parts, 'weakestTier', 'T2', (a, b) => (a < b ? a : b)),
    required: required(parts),
    recording: setting<Ruleset['recording']>(parts, 'recording', 'required', (a, b) => (a === 'required' ? a : b)),
    layers: [
      ...parts.bounds.filter(({ part }) => !parts.pool.includes(part)).map(({ part }) => part),
      ...[...parts.pool].sort((a, b) => b.rank - a.rank),
    ].map(({ layer }) => layer),
  };
  return { ruleset, notes: [...asks(parts.asking), ...withoutEffect(parts), ...wide(ruleset)] };
}

/** BLAKE3 of what a ruleset makes hold, 64 hex digits: two that enforce the same have the same, whoever wrote the rules. */
export function rulesetHash(ruleset: Ruleset): string {
  const hash = hashes.get(ruleset) ?? hashOf(ruleset);
  hashes.set(ruleset, hash);
  return hash;
}

/** A ruleset does not change. */
const hashes = new WeakMap<Ruleset, string>();

function hashOf(ruleset: Ruleset): string {
  const text = JSON.stringify(ruleset, (key, value: unknown) =>
    ['source', 'why', 'reasons', 'layers', 'layer'].includes(key) ? undefined : value,
  );
  return blake3Hex(utf8(text));
}

function checkPlaces({ home, project, tmp, nd7Home }: Places): void {
  for (const [name, path] of Object.entries({ home, project, tmp, nd7Home }))
    if (!isNormal(path) || path === '/')
      throw new PolicyError(
        'bad-place',
        `the ${name} folder "${path}" is no folder to build on`,
        'It must be an absolute path below /.',
      );
  if (isWithin(home, nd7Home) || isWithin(project, nd7Home))
    throw new PolicyError(
      'bad-place',
      `nd7's own folder ${nd7Home} holds ${isWithin(project, nd7Home) ? 'the project' : 'the home folder'}`,
      'It is hidden from the session: choose another ND7_HOME, or another project.',
    );
}

function foldersToMake(parts: Parts, places: Places): Ruleset['makeFolders'] {
  return parts.pool.filter(mayHoldSecrets).flatMap((part) =>
    (part.document.makeFolders ?? []).map((written, i) => {
      const { path, ifPrograms } = typeof written === 'string' ? { path: written } : written;
      const source = part.source(['makeFolders', i], path);
      return { path: expandAt(path, places, source), ifPrograms: ifPrograms ?? null, source };
    }),
  );
}

type Setting = 'privateTmp' | 'patterns' | 'weakestTier' | 'recording';

/** The nearest policy's word, made stricter by all that only narrow. */
function setting<T>(parts: Parts, key: Setting, otherwise: T, stricter: (a: T, b: T) => T): T {
  const said = [...parts.pool].sort((a, b) => b.rank - a.rank).find((part) => part.document[key] !== undefined);
  const narrowing = parts.bounds.flatMap(({ part }) =>
    part.document[key] === undefined ? [] : [part.document[key] as T],
  );
  return narrowing.reduce(stricter, (said?.document[key] as T | undefined) ?? otherwise);
}

function required(parts: Parts): Sourced<{ property: Property }>[] {
  const all = new Map<Property, Sourced<{ property: Property }>>();
  for (const part of everyPart(parts))
    for (const [i, property] of (part.document.require ?? []).entries())
      // What somebody here has required themselves is theirs, though nd7's own profiles say it too.
      if (!all.has(property) || (all.get(property)?.source.file === null && part.layer.file !== null))
        all.set(property, { property, source: part.source(['require', i], property) });
  return [...all.values()].sort((a, b) => (a.property < b.property ? -1 : 1));
}

/** What an untrusted project would like. */
function asks(part: Part | null): Note[] {
  if (part === null) return [];
  const { document } = part;
  const at = (path: (string | number)[], rule: string): Note => ({
    kind: 'asks',
    text: `the project's policy is not trusted, so this has no effect: ${[...path.filter((step) => typeof step === 'string'), rule].join(' ')}`,
    source: part.source(path, rule),
  });
  const hostText = (entry: string | { host: string }): string => (typeof entry === 'string' ? entry : entry.host);
  return [
    ...(document.extends ?? []).map((name, i) => at(['extends', i], name)),
    ...Object.entries(document.packs ?? {}).map(([name, on]) => at(['packs', name], String(on))),
    ...(['read', 'write', 'exec'] as const).flatMap((right) =>
      (document.files?.[right]?.allow ?? []).map((path, i) => at(['files', right, 'allow', i], path)),
    ),
    ...(document.protect?.release ?? []).map((name, i) => at(['protect', 'release', i], name)),
    ...(document.sockets?.allow ?? []).map((name, i) => at(['sockets', 'allow', i], name)),
    ...(document.network?.allow ?? []).map((entry, i) => at(['network', 'allow', i], hostText(entry))),
    ...(['listen', 'loopback'] as const).flatMap((kind) =>
      (document.network?.[kind] ?? []).map((port, i) => at(['network', kind, i], String(port))),
    ),
    ...(document.environment?.pass ?? []).map((name, i) => at(['environment', 'pass', i], name)),
    ...Object.keys(document.environment?.set ?? {}).map((name) => at(['environment', 'set', name], name)),
  ];
}

/** Fields that only a person's own policy may have: what is read, run or copied outside, what is switched, what is released. */
const PERSONAL: readonly (keyof PolicyDocument)[] = ['credentials', 'seeds', 'makeFolders'];

function withoutEffect(parts: Parts): Note[] {
  const note = (part: Part, key: string): Note => ({
    kind: 'without-effect',
    text: `"${key}" has an effect in your own policy only`,
    source: part.source([key], ''),
  });
  return everyPart(parts).flatMap((part) => [
    ...(mayHoldSecrets(part)
      ? []
      : PERSONAL.filter((key) => part.document[key] !== undefined).map((key) => note(part, key))),
    ...(part.layer.layer === 'team' && part.document.packs !== undefined ? [note(part, 'packs')] : []),
  ]);
}

/** Rules that allow more than their authors may think. */
function wide(ruleset: Ruleset): Note[] {
  const own = (source: Source): boolean =>
    source.layer === 'user' || source.layer === 'project' || source.layer === 'session' || source.layer === 'grant';
  const notes: Note[] = [];
  const say = (text: string, source: Source): void => {
    notes.push({ kind: 'wide', text, source });
  };
  for (const { path, access, why } of ruleset.files)
    if (
      access.write &&
      own(why.write) &&
      path !== ruleset.project &&
      (isWithin(ruleset.home, path) || path.split('/').length <= 2)
    )
      say(`all of ${path} is writable`, why.write);
  const project = ruleset.files.find(({ path }) => path === ruleset.project);
  if (project?.access.write === true && isWithin(ruleset.home, ruleset.project))
    say('the project is your home folder, and all of it is writable', project.why.write);
  for (const { host, allow, source } of ruleset.network.hosts) {
    if (allow && host === '*') say('every host may be reached', source);
    else if (allow && host.startsWith('*.') && host.split('.').length === 2)
      say(`every name under .${host.slice(2)} may be reached`, source);
  }
  for (const { name, warning, source } of ruleset.sockets) if (warning !== null) say(`${name}: ${warning}`, source);
  return notes;
}
