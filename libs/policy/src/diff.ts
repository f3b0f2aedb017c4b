import { nodeAt } from './decide.js';
import { RIGHTS } from './files.js';
import { rangeText } from './why.js';
import type { Access, HostBound, HostRule, LeafTreatment, Mask, ProtectedLeaf, Ruleset, Source } from './ruleset.js';

/** One difference between two rulesets. */
export interface Change {
  about:
    | 'file'
    | 'mask'
    | 'leaf'
    | 'host'
    | 'bound'
    | 'listen'
    | 'loopback'
    | 'socket'
    | 'credential'
    | 'pass'
    | 'unset'
    | 'set'
    | 'folder'
    | 'seed'
    | 'required'
    | 'setting';
  what: string;
  /** How it stands; null where there is none. */
  before: string | null;
  after: string | null;
  /** Whether something may come to be allowed by it, and whether something may cease to be. Both, where that cannot be told. */
  widens: boolean;
  narrows: boolean;
  /** The rule that brought it, or the one that is gone; null for settings. */
  source: Source | null;
}

/**
 * What changes from one ruleset to another. Nothing widens that is not said to: if no change does, everything that is allowed after is
 * allowed before. The other way about likewise.
 */
export function diff(before: Ruleset, after: Ruleset): Change[] {
  const lists: [Change['about'], Row[], Row[], Direction][] = [
    ['mask', before.masks.map(maskRow), after.masks.map(maskRow), NARROWING],
    ['leaf', before.leaves.map(leafRow), after.leaves.map(leafRow), () => EITHER],
    ['host', before.network.hosts.map(hostRow), after.network.hosts.map(hostRow), () => EITHER],
    ['bound', before.network.bounds.map(boundRow), after.network.bounds.map(boundRow), NARROWING],
    ...(['listen', 'loopback'] as const).map((kind): [Change['about'], Row[], Row[], Direction] => {
      const row = (range: Ruleset['network'][typeof kind][number]): Row => ({
        what: rangeText(range),
        text: 'reached',
        source: range.source,
      });
      return [kind, before.network[kind].map(row), after.network[kind].map(row), WIDENING];
    }),
    ['socket', before.sockets.map(socketRow), after.sockets.map(socketRow), WIDENING],
    [
      'credential',
      before.network.credentials.map(credentialRow),
      after.network.credentials.map(credentialRow),
      () => EITHER,
    ],
    ['pass', before.environment.pass.map(passRow), after.environment.pass.map(passRow), WIDENING],
    ['unset', before.environment.unset.map(unsetRow), after.environment.unset.map(unsetRow), NARROWING],
    ['set', before.environment.set.map(setRow), after.environment.set.map(setRow), () => EITHER],
    ['folder', before.makeFolders.map(folderRow), after.makeFolders.map(folderRow), WIDENING],
    ['seed', before.seeds.map(seedRow), after.seeds.map(seedRow), WIDENING],
    ['required', before.required.map(requiredRow), after.required.map(requiredRow), NARROWING],
  ];
  return [
    ...fileChanges(before, after),
    ...lists.flatMap(([about, was, now, direction]) => listChanges(about, was, now, direction)),
    ...settingChanges(before, after),
  ];
}

/** One rule of a list: `what` and `text` together say all that it makes hold. */
interface Row {
  what: string;
  text: string;
  source: Source;
  /** Of a leaf: only one that refuses, or that stands for itself, can do nothing but narrow. */
  narrowsOnly?: boolean;
}

type Effect = Pick<Change, 'widens' | 'narrows'>;
type Direction = (added: boolean) => Effect;
const EITHER: Effect = { widens: true, narrows: true };
const WIDENING: Direction = (added) => ({ widens: added, narrows: !added });
const NARROWING: Direction = (added) => ({ widens: !added, narrows: added });

function listChanges(about: Change['about'], was: Row[], now: Row[], direction: Direction): Change[] {
  const key = ({ what, text }: Row): string => JSON.stringify([what, text]);
  const [had, has] = [new Set(was.map(key)), new Set(now.map(key))];
  const effect = (row: Row, added: boolean): Effect => (row.narrowsOnly === true ? NARROWING(added) : direction(added));
  const gone = dropRepeats(was, key).filter((row) => !has.has(key(row)));
  const come = dropRepeats(now, key).filter((row) => !had.has(key(row)));
  return [
    ...gone.map((row): Change => ({
      about,
      what: row.what,
      before: row.text,
      after: null,
      ...effect(row, false),
      source: row.source,
    })),
    ...come.map((row): Change => ({
      about,
      what: row.what,
      before: null,
      after: row.text,
      ...effect(row, true),
      source: row.source,
    })),
  ];
}

function dropRepeats(rows: Row[], key: (row: Row) => string): Row[] {
  return [...new Map(rows.map((row) => [key(row), row])).values()];
}

/** Paths at which the access changes in another way than at the folder above. */
function fileChanges(before: Ruleset, after: Ruleset): Change[] {
  const paths = [...new Set([...before.files, ...after.files].map(({ path }) => path))];
  const told = new Map<string, string>();
  const changes: Change[] = [];
  for (const path of paths.sort((a, b) => a.length - b.length || (a < b ? -1 : 1))) {
    const [was, now] = [nodeAt(before, path), nodeAt(after, path)];
    const change = `${accessText(was.access)} ${accessText(now.access)}`;
    told.set(path, change);
    if (accessText(was.access) === accessText(now.access)) continue;
    let above = path;
    while (above !== '/' && (above === path || !told.has(above))) above = above.slice(0, above.lastIndexOf('/')) || '/';
    if (above !== path && told.get(above) === change) continue;
    const moved = RIGHTS.filter((right) => was.access[right] !== now.access[right]);
    changes.push({
      about: 'file',
      what: path,
      before: accessText(was.access),
      after: accessText(now.access),
      widens: moved.some((right) => now.access[right]),
      narrows: moved.some((right) => was.access[right]),
      source: now.why[moved[0] ?? 'read'],
    });
  }
  return changes;
}

/** `rwx`, with `-` for what may not be done. */
export function accessText({ read, write, exec }: Access): string {
  return `${read ? 'r' : '-'}${write ? 'w' : '-'}${exec ? 'x' : '-'}`;
}

function maskRow({ pattern, under, except, exceptPaths, notBelow, exceptTracked, source }: Mask): Row {
  const out = [...except, ...exceptPaths, ...notBelow, ...(exceptTracked ? ['files that git tracks'] : [])];
  return {
    what: pattern,
    text: `below ${under.join(', ') || 'no folder'}${out.length > 0 ? `, but for ${out.join(', ')}` : ''}`,
    source,
  };
}

const TREATED: Readonly<Record<LeafTreatment, string>> = { refuse: 'refused', mediate: 'mediated', record: 'recorded' };

function leafRow({
  at,
  under,
  pattern,
  below,
  notBelow,
  exceptPaths,
  treatment,
  mediator,
  source,
}: ProtectedLeaf): Row {
  const where = at === 'git-dir' ? 'in git directories below' : at === 'anywhere' ? 'anywhere below' : 'in';
  const out = [...notBelow, ...exceptPaths];
  return {
    what: pattern,
    text: `${TREATED[treatment]}${mediator === null ? '' : ` by ${mediator}`} ${where} ${under.join(', ')}${below ? '' : ', itself alone'}${out.length > 0 ? `, but for ${out.join(', ')}` : ''}`,
    source,
    narrowsOnly:
      treatment === 'refuse' || source.layer === 'team' || source.layer === 'project' || source.layer === 'fixed',
  };
}

function hostRow({ host, ports, allow, raw, privateAddresses, source }: HostRule): Row {
  const how = [...(raw ? ['any protocol'] : []), ...(privateAddresses ? ['private addresses'] : [])];
  return { what: `${host}:${rangeText(ports)}`, text: allow ? ['allowed', ...how].join(', ') : 'denied', source };
}

function boundRow({ layer, otherwise, rules }: HostBound): Row {
  const text = rules.map(hostRow).map((row) => `${row.what} ${row.text}`);
  return {
    what: `${layer.layer} ${layer.name}`,
    text: [...text, `else ${otherwise}`].join('; '),
    source: rules[0]?.source ?? {
      layer: layer.layer,
      policy: layer.name,
      file: layer.file,
      line: null,
      text: 'network.only',
    },
  };
}

function socketRow({ path, name, source }: Ruleset['sockets'][number]): Row {
  return { what: path, text: name, source };
}

function credentialRow({ name, source, ...rule }: Ruleset['network']['credentials'][number]): Row {
  return { what: name, text: JSON.stringify(rule), source };
}

function passRow({ pattern, source }: Ruleset['environment']['pass'][number]): Row {
  return { what: pattern, text: 'passed', source };
}

function unsetRow({ pattern, except, source }: Ruleset['environment']['unset'][number]): Row {
  return { what: pattern, text: except.length > 0 ? `held back, but for ${except.join(', ')}` : 'held back', source };
}

function setRow({ name, value, source }: Ruleset['environment']['set'][number]): Row {
  return { what: name, text: value, source };
}

function folderRow({ path, ifPrograms, source }: Ruleset['makeFolders'][number]): Row {
  return { what: path, text: ifPrograms === null ? 'made' : `made where there is ${ifPrograms.join(' or ')}`, source };
}

function seedRow({ from, to, source }: Ruleset['seeds'][number]): Row {
  return { what: to, text: `a copy of ${from}`, source };
}

function requiredRow({ property, source }: Ruleset['required'][number]): Row {
  return { what: property, text: 'required', source };
}

function settingChanges(before: Ruleset, after: Ruleset): Change[] {
  const settings: ['privateTmp' | 'patterns' | 'weakestTier' | 'recording', readonly unknown[]][] = [
    // From the strictest on.
    ['privateTmp', [true, false]],
    ['patterns', ['strict', 'names']],
    ['weakestTier', ['T1', 'T2', 'T3']],
    ['recording', ['required', 'best-effort']],
  ];
  return settings.flatMap(([key, order]): Change[] => {
    const [was, now] = [before[key], after[key]];
    if (was === now) return [];
    const widens = order.indexOf(now) > order.indexOf(was);
    return [
      { about: 'setting', what: key, before: String(was), after: String(now), widens, narrows: !widens, source: null },
    ];
  });
}
