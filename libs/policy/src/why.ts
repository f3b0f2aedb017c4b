import { decideHost, loopbackAddresses, nearestNode, portRule, writableRoots } from './decide.js';
import type { Facts } from './decide.js';
import { holdsBack, passes } from './environment.js';
import { isFinal } from './files.js';
import type { Right } from './files.js';
import { hostMatches, parseAuthority, parseHost, parsePort } from './host.js';
import type { Host, HostFault } from './host.js';
import { leafAt, maskedPrefix } from './names.js';
import { isNormal, isWithin } from './path.js';
import { nameMatches } from './pattern.js';
import type { FileNode, HostRule, PortRange, Ruleset, Source } from './ruleset.js';

export type Question =
  | { about: Right; path: string }
  /** As somebody typed it: `example.com`, `example.com:8443`, `[::1]:80`; without a port 443 is meant. */
  | { about: 'host'; authority: string }
  | { about: 'socket'; path: string }
  | { about: 'listen' | 'loopback'; port: number }
  | { about: 'variable'; name: string };

export interface Answer {
  question: Question;
  /** `mediated`: as far as the change runs nothing. `recorded`: done, and kept as something that will run or be trusted later. */
  outcome: 'allowed' | 'recorded' | 'mediated' | 'denied';
  /** What decided. */
  by: 'file' | 'mask' | 'leaf' | 'host' | 'bound' | 'form' | 'socket' | 'port' | 'variable';
  /** The deciding rule; null where there is none: what nothing allows is denied, and what is no host has no rule. */
  source: Source | null;
  /** One sentence: what was decided, and why. */
  reason: string;
  /** For what is denied: the nearest ways that are open, the nearest first. */
  instead: Way[];
}

export type Way =
  /** Something near that is allowed as things stand. */
  | { kind: 'use'; text: string; what: string }
  /** The smallest grant that would do; a person has to give it, outside. */
  | { kind: 'grant'; text: string; grant: { right: Granted; what: string } };

/** What a grant is about. */
type Granted = Right | 'net' | 'socket' | 'listen' | 'loopback';

/** Why something is allowed or denied: by the same rules that are enforced, so the two cannot disagree. */
export function why(ruleset: Ruleset, question: Question, facts: Facts = {}): Answer {
  switch (question.about) {
    case 'read':
    case 'write':
    case 'exec':
      return whyPath(ruleset, question, facts);
    case 'host':
      return whyHost(ruleset, question);
    case 'socket':
      return whySocket(ruleset, question);
    case 'listen':
    case 'loopback':
      return whyPort(ruleset, question);
    case 'variable':
      return whyVariable(ruleset, question);
  }
}

const DOING: Readonly<Record<Right, string>> = { read: 'read', write: 'written', exec: 'run' };

function whyPath(ruleset: Ruleset, question: Question & { about: Right; path: string }, facts: Facts): Answer {
  const { about: right, path } = question;
  if (!isNormal(path)) return malformed(question, `"${path}" is no absolute, normal path`);
  const node = reasonAt(ruleset, path);
  const source = node.why[right];
  const masks = ruleset.masks.filter((rule) => maskedPrefix(rule, path, facts.tracked) !== undefined);
  const mask = masks.find((rule) => isFinal(rule.source)) ?? masks[0];
  if (mask !== undefined && (node.access[right] || !isFinal(source))) {
    const use: Way[] = mask.except.map((pattern) => ({
      kind: 'use',
      what: pattern,
      text: `files that match ${pattern} are let out of this mask`,
    }));
    return {
      question,
      outcome: 'denied',
      by: 'mask',
      source: mask.source,
      reason: `${path} matches ${mask.pattern}, and names that do are masked`,
      instead: [...use, ...grantFor(right, path, mask.source)],
    };
  }
  // A rule that names something in it decides; one about a folder around it is about the disk, which lies under it.
  const own = facts.ownFolders?.find(
    (folder) => isWithin(path, folder) && (node.path === folder || !isWithin(node.path, folder)),
  );
  if (own !== undefined && ruleset.privateTmp && right !== 'exec')
    return {
      question,
      outcome: 'allowed',
      by: 'file',
      source: null,
      reason: `${path} may be ${DOING[right]} in tier T1, where ${own} is a folder of the session’s own and gone with it; in tiers T2 and T3 it is closed`,
      instead: [],
    };
  if (!node.access[right])
    return {
      question,
      outcome: 'denied',
      by: 'file',
      source,
      reason: node.access.read ? `${path} may not be ${DOING[right]}` : `${path} is hidden`,
      instead: [...nearestPath(ruleset, right, path), ...grantFor(right, path, source)],
    };
  const leaf = right === 'write' ? leafAt(ruleset.leaves, path, facts.isGitDir) : undefined;
  if (leaf === undefined)
    return { question, outcome: 'allowed', by: 'file', source, reason: `${path} may be ${DOING[right]}`, instead: [] };
  const outcomes = { refuse: 'denied', mediate: 'mediated', record: 'recorded' } as const;
  return {
    question,
    outcome: outcomes[leaf.treatment],
    by: 'leaf',
    source: leaf.source,
    reason: `${path} is protected (${leaf.pattern}): ${leaf.because}`,
    instead:
      leaf.treatment === 'refuse' && !heldForGood(ruleset, path, facts) ? grantFor(right, path, leaf.source) : [],
  };
}

/** Whether a team or nd7 itself refuses the name too, behind the leaf that decides. */
function heldForGood(ruleset: Ruleset, path: string, facts: Facts): boolean {
  return (
    leafAt(
      ruleset.leaves.filter(({ source }) => isFinal(source)),
      path,
      facts.isGitDir,
    )?.treatment === 'refuse'
  );
}

/** The nearest place where the same would be allowed: what lies nearest to the path by name, else the project, else the temporary folder. */
function nearestPath(ruleset: Ruleset, right: Right, path: string): Way[] {
  if (right === 'read') return [];
  const roots =
    right === 'write'
      ? writableRoots(ruleset)
      : ruleset.files.filter(({ access }) => access.exec && access.write).map((node) => node.path);
  const useful = roots.filter((root) => !isWithin(root, '/dev'));
  const rank = (root: string): number =>
    isWithin(path, root) ? 0 : root === ruleset.project ? 1 : root === ruleset.tmp ? 2 : 3;
  const [nearest] = useful.filter((root) => rank(root) < 3).sort((a, b) => rank(a) - rank(b) || b.length - a.length);
  return nearest === undefined
    ? []
    : [
        {
          kind: 'use',
          what: nearest,
          text: right === 'exec' ? `programs in ${nearest} may be run` : `${nearest} may be written`,
        },
      ];
}

/** The grant that would do; none over what nobody at this machine can widen. */
function grantFor(right: Granted, what: string, source: Source | null): Way[] {
  if (right === 'exec' || (source !== null && isFinal(source))) return [];
  const living = commandFor(right, what);
  const text = [
    source?.layer === 'project'
      ? `the project’s own policy says otherwise: ${source.text}`
      : `a person can allow it in their own policy: ${JSON.stringify(what)} in ${FIELD[right]}`,
    ...(living === null ? [] : [`in a session that lives: ${living}`]),
  ].join('; ');
  return [{ kind: 'grant', grant: { right, what }, text }];
}

/** What a person types to grant it to a session that lives; null where nothing does. */
function commandFor(right: Granted, what: string): string | null {
  if (right === 'listen') return null;
  const [name, place] = right === 'loopback' ? ['net', `localhost:${what}`] : [right, what];
  const word = /^[\w@%+=:,./-]+$/.test(place) ? place : `'${place.replaceAll("'", `'\\''`)}'`;
  return `nd7 allow ${name} ${word}`;
}

const FIELD = {
  read: 'files.read.allow',
  write: 'files.write.allow',
  net: 'network.allow',
  socket: 'sockets.allow',
  listen: 'network.listen',
  loopback: 'network.loopback',
} as const;

/** The rule behind a path's access: that of the longest path above it which any rule names. */
function reasonAt(ruleset: Ruleset, path: string): FileNode {
  return nearestNode(ruleset.reasons, path);
}

function whyHost(ruleset: Ruleset, question: Question & { about: 'host' }): Answer {
  const asked = hostAndPort(question.authority);
  if ('fault' in asked) return malformed(question, `"${question.authority}" is no host and port (${asked.fault})`);
  const { host, port } = asked;
  if (loopbackAddresses(host.host) !== undefined) return { ...whyPort(ruleset, { about: 'loopback', port }), question };
  const decision = decideHost(ruleset.network, host, port);
  const name = `${host.host.includes(':') ? `[${host.host}]` : host.host}:${port}`;
  if (decision.allow)
    return {
      question,
      outcome: 'allowed',
      by: 'host',
      source: decision.rule?.source ?? null,
      reason: `${name} may be reached through the proxy${decision.raw ? ', with any protocol' : ', with TLS for this very name'}`,
      instead: [],
    };
  const source = decision.rule?.source ?? null;
  const { bound } = decision;
  return {
    question,
    outcome: 'denied',
    by: bound === null ? 'host' : 'bound',
    source,
    reason:
      bound === null
        ? decision.rule === null
          ? `no rule allows ${name}`
          : `a rule denies ${name}`
        : `${name} is allowed, but not by the ${bound.layer.layer} policy ${bound.layer.name}`,
    instead: [
      ...nearestHosts(ruleset, host, port),
      ...(bound?.layer.layer === 'team' ? [] : grantFor('net', name, source)),
    ],
  };
}

function hostAndPort(text: string): { host: Host; port: number } | { fault: HostFault | 'bad-port' } {
  const bare = parseHost(text);
  if (!('fault' in bare)) return { host: bare, port: 443 };
  const authority = parseAuthority(text);
  if ('fault' in authority)
    return /:[^\]:]*$/.test(text) && parsePort(text.slice(text.lastIndexOf(':') + 1)) !== undefined ? authority : bare;
  const { port, ...host } = authority;
  return { host, port };
}

/** The same host at a port that is allowed, or allowed names beside it. */
function nearestHosts(ruleset: Ruleset, host: Host, port: number): Way[] {
  const open = (rule: HostRule): boolean => rule.allow && hostMatches(rule.host, host) && !inRange(rule.ports, port);
  return ruleset.network.hosts
    .filter(open)
    .filter((rule) => decideHost(ruleset.network, host, rule.ports.from).allow)
    .slice(0, 3)
    .map((rule) => ({
      kind: 'use',
      what: `${host.host}:${rule.ports.from}`,
      text: `${host.host} may be reached at port ${rangeText(rule.ports)}`,
    }));
}

function inRange({ from, to }: PortRange, port: number): boolean {
  return from <= port && port <= to;
}

export function rangeText({ from, to }: PortRange): string {
  return from === to ? String(from) : `${from}-${to}`;
}

function whySocket(ruleset: Ruleset, question: Question & { about: 'socket' }): Answer {
  const { path } = question;
  if (!isNormal(path)) return malformed(question, `"${path}" is no absolute, normal path`);
  const grant = ruleset.sockets.find((socket) => socket.path === path);
  return {
    question,
    outcome: grant === undefined ? 'denied' : 'allowed',
    by: 'socket',
    source: grant?.source ?? null,
    reason:
      grant === undefined
        ? `${path} may not be connected to, unless it was made in this session`
        : `${path} may be connected to (${grant.name})${grant.warning === null ? '' : `: ${grant.warning}`}`,
    instead: grant === undefined ? grantFor('socket', path, null) : [],
  };
}

function whyPort(ruleset: Ruleset, question: Question & { about: 'listen' | 'loopback' }): Answer {
  const { about, port } = question;
  const rule = portRule(ruleset.network, about, port);
  const what = about === 'listen' ? `a server inside at port ${port}` : `this machine’s own service at port ${port}`;
  return {
    question,
    outcome: rule === undefined ? 'denied' : 'allowed',
    by: 'port',
    source: rule?.source ?? null,
    reason: rule === undefined ? `no rule lets ${what} be reached` : `${what} may be reached`,
    instead: rule === undefined ? grantFor(about, String(port), null) : [],
  };
}

function whyVariable(ruleset: Ruleset, question: Question & { about: 'variable' }): Answer {
  const { name } = question;
  const { set, unset, pass } = ruleset.environment;
  const fixed = set.find((rule) => rule.name === name);
  const allowed = fixed !== undefined || passes(ruleset.environment, name);
  const held = unset.find((rule) => holdsBack(rule, name));
  const rule =
    fixed ??
    held ??
    pass.find(({ pattern }) => pattern === name) ??
    pass.find(({ pattern }) => nameMatches(pattern, name));
  return {
    question,
    outcome: allowed ? 'allowed' : 'denied',
    by: 'variable',
    source: rule?.source ?? null,
    reason:
      fixed !== undefined
        ? `${name} is set inside`
        : allowed
          ? `${name} passes from outside`
          : held === undefined
            ? `no rule passes ${name}`
            : `${name} is held back`,
    instead: [],
  };
}

function malformed(question: Question, reason: string): Answer {
  return { question, outcome: 'denied', by: 'form', source: null, reason, instead: [] };
}
