// The rules of a living session: what it was started with, and over that what a person has granted and denied since.
import { lstatSync, realpathSync } from 'node:fs';
import { dirname, join } from 'node:path';
import {
  addressKind,
  compile,
  isWithin,
  leafAt,
  parseHost,
  parseHostRule,
  PolicyError,
  why,
  type CompileInput,
  type Facts,
  type HostBound,
  type NetworkRules,
  type Ruleset,
  type Source,
} from '@nd7/policy';
import { CliError } from '../cli/io.js';
import { ownProgramAt } from '../confine/own-program.js';
import { safeLine } from '../show/safe.js';
import type { Denial, Grant } from './entry.js';
import { loopbackPort, policyFor, questionFor, wantedText, type Wanted } from './wanted.js';

/** What holds with these grants and denials. Throws PolicyError for what is no path, no host, no socket. */
export function ruled(policies: CompileInput, grants: readonly Named[], denials: readonly Denial[]): Ruleset {
  const { ruleset } = compile({ ...policies, grants: grants.map(({ id, wanted }) => policyFor(id, [wanted])) });
  return { ...ruleset, network: denied(ruleset.network, denials) };
}

type Named = Pick<Grant, 'id' | 'wanted'>;

/** A denial is asked by itself, after everything that allows: nothing that was allowed before or is granted later goes over it. */
function denied(network: NetworkRules, denials: readonly Denial[]): NetworkRules {
  const hosts = denials.filter(({ wanted }) => wanted.right === 'net');
  const ports = hosts.map(({ wanted }) => loopbackPort(wanted)).filter((port) => port !== undefined);
  const bounds = hosts
    .filter(({ wanted }) => loopbackPort(wanted) === undefined)
    .map(({ id, wanted }): HostBound => {
      const source: Source = {
        layer: 'grant',
        policy: id,
        file: null,
        line: null,
        text: `nd7 deny net ${wanted.what}`,
      };
      const rule = parseHostRule(wanted.what);
      return {
        layer: { layer: 'grant', name: id, file: null, hash: null },
        otherwise: 'allow',
        rules: rule.ports.map((range) => ({
          host: rule.host,
          ports: range,
          allow: false,
          raw: false,
          privateAddresses: false,
          source,
        })),
      };
    });
  return { ...network, bounds: [...network.bounds, ...bounds], loopback: ports.reduce(without, network.loopback) };
}

function without(ranges: NetworkRules['loopback'], port: number): NetworkRules['loopback'] {
  return ranges.flatMap((range) => {
    if (port < range.from || port > range.to) return [range];
    const below = { ...range, to: port - 1 };
    const above = { ...range, from: port + 1 };
    return [below, above].filter(({ from, to }) => from <= to);
  });
}

/** What is asked for, as far as it can be meant on this disk: a folder only with all that is in it, a path under the name that it really has. */
export function placed(wanted: Wanted): Wanted {
  const { right, what } = wanted;
  if (right === 'net' || (right === 'socket' && !what.startsWith('/'))) return wanted;
  const real = follow(what);
  if (real !== what)
    throw new CliError(
      1,
      `${safeLine(what)} leads to ${safeLine(real)}`,
      `Name that: ${wantedText({ ...wanted, what: real })}`,
      'moved',
    );
  const stat = lstatSync(what, { throwIfNoEntry: false });
  if (right === 'socket') {
    if (stat?.isSocket() === true) return wanted;
    throw new CliError(1, `${safeLine(what)} is no socket`, 'Name one that is there.', 'no-socket');
  }
  if (stat === undefined && right === 'read')
    throw new CliError(1, `${safeLine(what)} is not there`, 'Reading is granted of what is there.', 'no-file');
  if (stat === undefined && lstatSync(dirname(what), { throwIfNoEntry: false })?.isDirectory() !== true)
    throw new CliError(
      1,
      `the folder of ${safeLine(what)} is not there`,
      `Make it first, or grant the folder that is missing: nd7 allow ${wantedText(smallest(wanted))}`,
      'no-folder',
    );
  if (stat?.isDirectory() === true && !wanted.below)
    throw new CliError(
      1,
      `${safeLine(what)} is a folder`,
      `With all that is in it: nd7 allow ${wantedText({ ...wanted, below: true })}`,
      'folder',
    );
  if (stat !== undefined && !stat.isDirectory() && wanted.below) return { ...wanted, below: false };
  return wanted;
}

/** The smallest grant by which a request can come true: of a path in folders that are not there yet, the first of these with what will be in it. */
export function smallest(wanted: Wanted): Wanted {
  if (wanted.right !== 'read' && wanted.right !== 'write') return wanted;
  const path = follow(wanted.what);
  const stat = lstatSync(path, { throwIfNoEntry: false });
  if (stat !== undefined) return { ...wanted, what: path, below: stat.isDirectory() };
  let missing = path;
  while (missing !== '/' && lstatSync(dirname(missing), { throwIfNoEntry: false }) === undefined)
    missing = dirname(missing);
  return { ...wanted, what: missing, below: missing !== path || wanted.below };
}

/** Links followed up to the last component that is there; the rest as it was said. */
export function follow(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    const folder = dirname(path);
    return folder === path ? path : join(follow(folder), path.slice(folder.length).replace(/^\/+/, ''));
  }
}

/** Throws `CliError` where the rules refuse it all the same: nobody at this machine widens what nd7 itself and a team hold. */
export function refuseHeld(candidate: Ruleset, id: string, wanted: Wanted, nd7Home: string, facts: Facts): void {
  const { right, what, below } = wanted;
  if ((right !== 'net' && isWithin(what, nd7Home)) || (below && isWithin(nd7Home, what)))
    throw held(wanted, 'nd7’s own folder is closed to every session', 'fixed, nd7: nothing widens it');
  if (right === 'write' && ownProgramAt(what, below) !== undefined)
    throw held(wanted, 'nd7 itself runs from there, outside of every session', 'fixed, nd7: nothing widens it');
  const own = ['/var/tmp', candidate.tmp].find(
    (folder) => isWithin(what, folder) && !isWithin(candidate.project, folder),
  );
  if (right !== 'net' && own !== undefined && candidate.privateTmp)
    throw held(wanted, `the session has ${own} to itself`, 'privateTmp: what lies there outside is another folder');
  const host = right === 'net' ? parseHost(what.replace(/:[^:]*$/, '')) : undefined;
  const kind = host !== undefined && !('fault' in host) && host.kind === 'ip' ? addressKind(host.host) : undefined;
  if (kind !== undefined && kind !== 'public' && kind !== 'private')
    throw held(
      wanted,
      `${kind} addresses are never dialled: what answers there gives out the machine’s own keys`,
      'fixed, nd7',
    );
  if (right === 'socket') {
    const named = candidate.sockets.filter(({ source }) => source.policy === id);
    if (named.some(({ path }) => isWithin(path, nd7Home)))
      throw held(wanted, 'nd7’s own sockets are closed to every session', 'fixed, nd7: nothing widens it');
    if (named.length === 0) throw held(wanted, `no socket of that name is known here, or a policy denies it`, null);
    return;
  }
  const question = questionFor(wanted);
  const answer = question && why(candidate, question, facts);
  if (answer?.outcome === 'denied') {
    const { source } = answer;
    const rule = source && `${source.file ?? source.layer} ${source.policy}, ${source.text}`;
    const lift = source?.layer === 'grant' ? `nd7 revoke ${source.policy}` : undefined;
    throw held(wanted, answer.reason, rule, lift);
  }
  if (!below || right === 'net') return;
  const holes = candidate.files.filter(({ path, access }) => path !== what && isWithin(path, what) && !access[right]);
  if (holes.length > 0)
    throw new CliError(
      1,
      `${safeLine(what)} holds what stays closed: ${holes
        .slice(0, 3)
        .map(({ path }) => safeLine(path))
        .join(', ')}${holes.length > 3 ? ` and ${holes.length - 3} more` : ''}`,
      'Grant narrower folders in it.',
      'holds-closed',
    );
}

function held(wanted: Wanted, reason: string, rule: string | null, lift?: string): CliError {
  const hint = lift ?? (rule === null ? undefined : `The rule: ${rule}`);
  return new CliError(
    1,
    safeLine(`${wantedText(wanted)} cannot be granted: ${reason}`),
    hint && safeLine(hint),
    'held',
  );
}

/** What a person should know before this is granted; empty for what is ordinary. */
export function risksOf(before: Ruleset, candidate: Ruleset, id: string, wanted: Wanted, facts: Facts): string[] {
  const { right, what, raw } = wanted;
  if (right === 'socket') {
    const known = candidate.sockets.filter(({ source }) => source.policy === id);
    const warned = known.map((socket) => socket.warning ?? byPath(socket.path));
    return [...new Set(warned.map((text) => text ?? 'what listens there acts outside the boundary, with your rights'))];
  }
  if (right === 'net') return hostRisks(wanted, raw);
  const risks: string[] = [];
  if (isWithin(before.home, what)) risks.push(`all of ${before.home} lies in it`);
  const question = questionFor(wanted);
  const answer = question && why(before, question, facts);
  if (answer?.outcome === 'denied' && (answer.by === 'mask' || answer.source?.policy === 'secrets'))
    risks.push(
      answer.source?.policy === 'secrets'
        ? `it is among the secrets that every profile hides (${answer.source.text})`
        : `it is masked as a secret (${answer.source?.text ?? ''})`,
    );
  if (right === 'write') risks.push(...sinkRisks(before, what, facts));
  return risks;
}

/** What runs or is trusted outside later: a protected name wherever it lies, and programs that are found by PATH. */
function sinkRisks({ leaves, network }: Ruleset, what: string, facts: Facts): string[] {
  const anywhere = leaves.map((leaf) => (leaf.at === 'folder' ? leaf : { ...leaf, under: ['/'], exceptPaths: [] }));
  const leaf = leafAt(anywhere, what, facts.isGitDir);
  const runs = leaf === undefined ? [] : [`something outside runs or trusts it later: ${leaf.because}`];
  const folders = (process.env['PATH'] ?? '').split(':').filter((folder) => folder.startsWith('/'));
  const found = folders.find((folder) => isWithin(what, follow(folder)) || isWithin(follow(folder), what));
  if (found !== undefined) runs.push(`programs in ${found} are run outside by their names`);
  // It is looked at before each run, so that it is not run: the person should know why their session has no key.
  const read = network.credentials.filter(({ from }) => isWithin(follow(outsideOf(from)), what));
  return [
    ...runs,
    ...read.map(({ name }) => `the credential ${name} is read by what lies there: from then on it is not`),
  ];
}

/** What of a credential lies on the disk outside; `/` for nothing. */
function outsideOf(from: Ruleset['network']['credentials'][number]['from']): string {
  const path = 'file' in from ? from.file : 'command' in from ? (from.command[0] ?? '/') : '/';
  return path.startsWith('/') ? path : '/';
}

const KNOWN: readonly [RegExp, string][] = [
  [
    /\/(docker|podman|containerd|crio)[^/]*\.sock$/,
    'who can start a container there is root on this machine, outside the boundary and unrecorded',
  ],
  [
    /\/(agent\.\d+|ssh-agent[^/]*|S\.gpg-agent[^/]*|keyring\/[^/]+)$/,
    'who reaches it uses your keys, for as long as the session lasts',
  ],
  [/\/bus$|systemd\/private$/, 'the service manager behind it starts programs outside the boundary for whoever asks'],
];

function byPath(path: string): string | undefined {
  return KNOWN.find(([pattern]) => pattern.test(path))?.[1];
}

function hostRisks({ what }: Wanted, raw: boolean): string[] {
  const risks: string[] = [];
  const host = what.replace(/:[^:]*$/, '');
  if (host === '*') risks.push('every host there is may be reached: what is read inside can be carried anywhere');
  else if (/^\*\.[^.]+$/.test(host)) risks.push(`every name under ${host.slice(1)} may be reached`);
  if (raw) risks.push('the proxy does not look at what goes through: any protocol, any name behind that host');
  const port = loopbackPort({ right: 'net', what });
  if (port !== undefined)
    risks.push(
      `what listens at port ${port} of this machine trusts its own users: debuggers, databases and editors there let in whoever asks`,
    );
  return risks;
}

/** How a PolicyError reads on a command line. */
export function asCliError(error: unknown): unknown {
  return error instanceof PolicyError ? new CliError(2, safeLine(error.what), safeLine(error.mend), error.code) : error;
}
