import { SOCKETS } from './builtin/index.js';
import type { PolicyDocument } from './document.js';
import { PolicyError } from './failure.js';
import { everyPart, expandAt, outranks, overCeiling, sourceKey } from './files.js';
import { parseHost, parseHostRule, parsePortRange } from './host.js';
import type { Part, Parts } from './parts.js';
import { GROUP } from './parts.js';
import { isNormal } from './path.js';
import type { Places } from './path.js';
import type {
  Credential,
  HostBound,
  HostRule,
  NetworkRules,
  PortRange,
  SocketGrant,
  Source,
  Sourced,
} from './ruleset.js';

type Network = NonNullable<PolicyDocument['network']>;
type Ranked = HostRule & { part: Part };

export function compileNetwork(parts: Parts, places: Places): NetworkRules {
  // What has no effect has to mean something all the same: a policy that is there is read whole.
  for (const part of everyPart(parts)) {
    hostRules(part, ['allow', 'deny', 'only']);
    for (const kind of ['listen', 'loopback'] as const) portRules(part, kind);
    socketRules(part, places);
    credentialsOf(part, places);
  }
  return {
    hosts: settle(parts.pool.flatMap((part) => hostRules(part, ['allow', 'deny']))),
    bounds: boundsOf(parts),
    listen: parts.pool.flatMap((part) => portRules(part, 'listen')),
    loopback: parts.pool.flatMap((part) => portRules(part, 'loopback')),
    credentials: parts.pool.filter(mayHoldSecrets).flatMap((part) => credentialsOf(part, places)),
  };
}

/** Each policy that only narrows is asked by itself, and so is each ceiling. */
function boundsOf(parts: Parts): HostBound[] {
  const narrowing = parts.bounds
    .filter(({ part }) => (part.document.network?.deny ?? []).length > 0)
    .map(({ part, over }): HostBound => ({
      layer: part.layer,
      otherwise: 'allow',
      rules: settle([part, ...over].flatMap((other) => hostRules(other, ['allow', 'deny']))),
    }));
  return [
    ...narrowing,
    ...everyPart(parts)
      .filter((part) => part.document.network?.only !== undefined)
      .map((part): HostBound => ({
        layer: part.layer,
        otherwise: 'deny',
        rules: settle([
          ...hostRules(part, ['only']),
          ...overCeiling(part, parts).flatMap((other) => hostRules(other, ['allow'])),
        ]),
      })),
  ];
}

function hostRules(part: Part, kinds: readonly ('allow' | 'deny' | 'only')[]): Ranked[] {
  return kinds.flatMap((kind) =>
    (part.document.network?.[kind] ?? []).flatMap((written, i) => {
      const entry = typeof written === 'string' ? { host: written } : written;
      const source = part.source(['network', kind, i], entry.host);
      const { host, ports } = placed(source, () => parseHostRule(entry.host));
      return ports.map((range) => ({
        host,
        ports: range,
        allow: kind !== 'deny',
        raw: entry.raw ?? false,
        privateAddresses: entry.privateAddresses ?? false,
        source,
        part,
      }));
    }),
  );
}

function placed<T>(source: Source, read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw error instanceof PolicyError ? error.at(source.file, source.line) : error;
  }
}

/** Of several rules about the very same host and ports one stands, so that what is left decides without knowing who stands above whom. */
function settle(rules: readonly Ranked[]): HostRule[] {
  const standing = new Map<string, Ranked>();
  for (const rule of rules) {
    const key = `${rule.host} ${rule.ports.from}-${rule.ports.to}`;
    const known = standing.get(key);
    if (known === undefined || stands(rule, known)) standing.set(key, rule);
  }
  return [...standing.entries()]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([, { host, ports, allow, raw, privateAddresses, source }]) => ({
      host,
      ports,
      allow,
      raw,
      privateAddresses,
      source,
    }));
}

/** Of one policy's two rules that only differ in how, the stricter manner. */
function stands(rule: Ranked, other: Ranked): boolean {
  if (rule.part.rank === other.part.rank && rule.allow === other.allow) {
    if (rule.raw !== other.raw) return !rule.raw;
    if (rule.privateAddresses !== other.privateAddresses) return !rule.privateAddresses;
  }
  return outranks(rule, other);
}

function portRules(part: Part, kind: 'listen' | 'loopback'): Sourced<PortRange>[] {
  return (part.document.network?.[kind] ?? ([] satisfies Network['listen'])).map((written, i) => {
    const source = part.source(['network', kind, i], String(written));
    return { ...placed(source, () => parsePortRange(String(written))), source };
  });
}

/** Only a person and what nd7 brings say what is read outside, run outside and sent: not a repository, not a team. */
export function mayHoldSecrets(part: Part): boolean {
  return part.group === GROUP.base || part.group >= GROUP.user;
}

function credentialsOf(part: Part, places: Places): Credential[] {
  return (part.document.credentials ?? []).map((rule, i) => {
    const source = part.source(['credentials', i], rule.name);
    const refuse = (what: string, mend: string): never => {
      throw new PolicyError('bad-policy', `credential "${rule.name}": ${what}`, mend, source.file, source.line);
    };
    const hosts = rule.hosts.map((text) => {
      const host = parseHost(text);
      return 'fault' in host || host.kind !== 'name'
        ? refuse(`"${text}" is no host name`, 'Exact names only, no wildcards and no addresses.')
        : host.host;
    });
    const header = (rule.header ?? 'authorization').toLowerCase();
    // RFC 9110, token. Names that say how the message is framed or where it goes are the proxy's.
    if (!/^[!#$%&'*+.^_`|~0-9a-z-]+$/.test(header) || FRAMING.has(header))
      refuse(`"${header}" cannot be put on`, 'Name the header that carries the secret.');
    const value = rule.value ?? 'Bearer {}';
    if (value.split('{}').length !== 2 || /[^\x20-\x7e]/.test(value))
      refuse('its value has not one {}', 'Write where the secret goes: "Bearer {}".');
    if (rule.way === 'endpoint' && rule.endpointVariable === undefined)
      refuse('no endpointVariable', 'Say which variable points the client at the listener.');
    const from = 'file' in rule.from ? { file: expandAt(rule.from.file, places, source) } : rule.from;
    return {
      name: rule.name,
      hosts,
      way: rule.way,
      header,
      value,
      endpointVariable: rule.endpointVariable ?? null,
      placeholderVariable: rule.placeholderVariable ?? null,
      from,
      source,
    };
  });
}

const FRAMING = new Set([
  'host',
  'connection',
  'content-length',
  'transfer-encoding',
  'upgrade',
  'te',
  'trailer',
  'keep-alive',
  'proxy-authorization',
  'proxy-connection',
  'expect',
]);

/** Sockets that are granted, each with what that means. */
export function compileSockets(parts: Parts, places: Places): SocketGrant[] {
  const standing = new Map<string, SocketGrant & { allow: boolean; part: Part }>();
  for (const rule of parts.pool.flatMap((part) => socketRules(part, places))) {
    const known = standing.get(rule.path);
    if (known === undefined || outranks(rule, known)) standing.set(rule.path, rule);
  }
  // Of who only narrows, a denial holds unless a policy in `over` has the socket by name.
  const denied = (path: string): boolean =>
    parts.bounds.some(({ part, over }) => {
      const says = (who: Part, allow: boolean): boolean =>
        socketRules(who, places).some((rule) => rule.allow === allow && rule.path === path);
      return says(part, false) && !over.some((other) => says(other, true));
    });
  return [...standing.values()]
    .filter((rule) => rule.allow && !denied(rule.path))
    .map(({ path, name, warning, source }) => ({ path, name, warning, source }))
    .sort((a, b) => (a.path === b.path ? Number(sourceKey(a.source) > sourceKey(b.source)) : a.path < b.path ? -1 : 1));
}

function socketRules(part: Part, places: Places): (SocketGrant & { allow: boolean; part: Part })[] {
  const kinds = ['allow', 'deny'] as const;
  return kinds.flatMap((kind) =>
    (part.document.sockets?.[kind] ?? []).flatMap((name, i) => {
      const source = part.source(['sockets', kind, i], name);
      const warning = Object.hasOwn(SOCKETS, name) ? (SOCKETS[name]?.warning ?? null) : null;
      return socketPaths(name, places, source).map((path) => ({
        path,
        name,
        warning,
        source,
        part,
        allow: kind === 'allow',
      }));
    }),
  );
}

const RUNTIME = '$XDG_RUNTIME_DIR';

/** Where a socket lies on this machine; nowhere, if it is one whose variable is not set. */
export function socketPaths(name: string, places: Places, source: Source): string[] {
  const known = Object.hasOwn(SOCKETS, name) ? SOCKETS[name] : undefined;
  if (known === undefined) {
    if (!/^[/~.$]/.test(name))
      throw new PolicyError(
        'unknown-name',
        `no socket is called "${name}"`,
        `There are ${Object.keys(SOCKETS).join(', ')}; else write its path.`,
        source.file,
        source.line,
      );
    return [expandAt(name, places, source)];
  }
  const variable = (of: string): string | undefined =>
    Object.hasOwn(places.variables, of) ? places.variables[of] : undefined;
  const said = known.variable === null ? undefined : variable(known.variable)?.replace(/^unix:\/\//, '');
  if (said !== undefined && isNormal(said)) return [said];
  const runtime = variable(RUNTIME.slice(1));
  return known.paths.flatMap((path) => {
    if (path.startsWith('~')) return [expandAt(path, places, source)];
    if (!path.startsWith(RUNTIME)) return [path];
    return runtime !== undefined && isNormal(runtime) ? [runtime + path.slice(RUNTIME.length)] : [];
  });
}
