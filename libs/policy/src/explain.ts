import { accessText } from './diff.js';
import type { LeafTreatment, Ruleset, Source } from './ruleset.js';
import { rangeText } from './why.js';

/** One thing that a ruleset makes hold, for people. */
export interface Statement {
  what: string;
  text: string;
  source: Source | null;
}

/** A ruleset in the order in which people ask: what can it change, what can it see, whom can it reach, what does it get, what must hold. */
export interface Explanation {
  title: string;
  statements: Statement[];
}

/** The whole ruleset as statements, each with the rule behind it. */
export function explain(ruleset: Ruleset): Explanation[] {
  return [
    {
      title: 'Files: what may be done from this path on',
      statements: ruleset.files.map(({ path, access, why }) => ({
        what: path,
        text: accessText(access),
        source: access.read ? (access.write ? why.write : why.read) : why.read,
      })),
    },
    {
      title: 'Names that are masked wherever they turn up',
      statements: ruleset.masks.map(({ pattern, under, except, exceptPaths, notBelow, exceptTracked, source }) => ({
        what: pattern,
        text: [
          `below ${under.join(', ') || 'no folder'}`,
          ...except.map((text) => `not ${text}`),
          ...exceptPaths.map((path) => `not ${path}`),
          ...notBelow.map((name) => `not below ${name}`),
          ...(exceptTracked ? ['not what git tracks'] : []),
        ].join('; '),
        source,
      })),
    },
    ...(['refuse', 'mediate', 'record'] as const).map((treatment) => ({
      title: LEAVES[treatment],
      statements: leavesOf(ruleset, treatment),
    })),
    {
      title: 'Network: hosts, through the proxy',
      statements: ruleset.network.hosts.map(({ host, ports, allow, raw, privateAddresses, source }) => ({
        what: `${host}:${rangeText(ports)}`,
        text: allow
          ? [
              'allowed',
              ...(raw ? ['any protocol'] : ['TLS for this name']),
              ...(privateAddresses ? ['private addresses too'] : []),
            ].join(', ')
          : 'denied',
        source,
      })),
    },
    {
      title: 'Network: who must agree besides',
      statements: ruleset.network.bounds.flatMap(({ layer, otherwise, rules }) => [
        ...rules.map(({ host, ports, allow, source }) => ({
          what: `${host}:${rangeText(ports)}`,
          text: allow ? 'agrees' : 'refuses',
          source,
        })),
        {
          what: 'every other host',
          text: `${layer.layer} ${layer.name} ${otherwise === 'allow' ? 'agrees' : 'refuses'}`,
          source: null,
        },
      ]),
    },
    {
      title: 'Ports of this machine',
      statements: [
        ...ruleset.network.listen.map((range) => ({
          what: rangeText(range),
          text: 'a server inside may be reached',
          source: range.source,
        })),
        ...ruleset.network.loopback.map((range) => ({
          what: rangeText(range),
          text: 'a service of this machine may be connected to',
          source: range.source,
        })),
      ],
    },
    {
      title: 'Sockets',
      statements: ruleset.sockets.map(({ path, name, warning, source }) => ({
        what: path,
        text: warning === null ? name : `${name}: ${warning}`,
        source,
      })),
    },
    {
      title: 'Secrets that stay outside',
      statements: ruleset.network.credentials.map(({ name, hosts, way, header, source }) => ({
        what: name,
        text: `${header} to ${hosts.join(', ')} (${way})`,
        source,
      })),
    },
    {
      title: 'Environment',
      statements: [
        ...ruleset.environment.set.map(({ name, value, source }) => ({
          what: name,
          text: `set to ${JSON.stringify(value)}`,
          source,
        })),
        ...ruleset.environment.unset.map(({ pattern, except, source }) => ({
          what: pattern,
          text: ['held back', ...except.map((name) => `not ${name}`)].join('; '),
          source,
        })),
        ...ruleset.environment.pass.map(({ pattern, source }) => ({
          what: pattern,
          text: 'passes, unless held back',
          source,
        })),
      ],
    },
    {
      title: 'What must hold',
      statements: [
        { what: 'weakest tier', text: ruleset.weakestTier, source: null },
        { what: 'recording', text: ruleset.recording, source: null },
        {
          what: ruleset.tmp,
          text: ruleset.privateTmp ? 'private to the session' : 'that of the machine',
          source: null,
        },
        { what: 'masks without mounts', text: ruleset.patterns, source: null },
        ...ruleset.required.map(({ property, source }) => ({ what: property, text: 'required', source })),
      ],
    },
  ].filter(({ statements }) => statements.length > 0);
}

const LEAVES: Readonly<Record<LeafTreatment, string>> = {
  refuse: 'Names that are not made or changed',
  mediate: 'Files whose change passes as far as it runs nothing',
  record: 'Names whose change is recorded as something that runs or is trusted later',
};

function leavesOf(ruleset: Ruleset, treatment: LeafTreatment): Statement[] {
  return ruleset.leaves
    .filter((leaf) => leaf.treatment === treatment)
    .map(({ at, under, pattern, exceptPaths, because, source }) => ({
      what:
        at === 'folder'
          ? `${under[0] === '/' ? '' : (under[0] ?? '')}/${pattern}`
          : at === 'git-dir'
            ? `git:${pattern}`
            : pattern,
      text: [because, ...exceptPaths.map((path) => `not ${path}`)].join('; '),
      source,
    }));
}
