// The command line by which a container engine makes a box. What of it holds is the engine's word.
import { existsSync, realpathSync, statSync } from 'node:fs';
import type { Shown } from '@nd7/confine';
import { isWithin, type Ruleset } from '@nd7/policy';
import { CliError } from '../cli/io.js';

/** Boxes that an engine makes of an image. gVisor is a runtime of docker's. */
export const ENGINES = ['docker', 'podman', 'gvisor'] as const;
export type EngineKind = (typeof ENGINES)[number];

/** The engine's program. */
export const programOf = (kind: EngineKind): string => (kind === 'gvisor' ? 'docker' : kind);

export interface EngineInput {
  kind: EngineKind;
  image: string;
  ruleset: Ruleset;
  shows: readonly Shown[];
  cwd: string;
  /** A person's own arguments, before nd7's. */
  given: readonly string[];
  /** What the image's process 1 is: nd7's first program and its arguments. */
  argv: readonly string[];
  user: { uid: number; gid: number };
  isTerminal: boolean;
  /** Variables of the programs inside. */
  variables: Readonly<Record<string, string>>;
  /** Files that the engine reads and writes: variables, and the container's identity. */
  files: { environment: string; identity: string };
}

/** Arguments of the engine's program. Throws `CliError` for a name that would be read as something else. */
export function engineArguments(input: EngineInput): string[] {
  const { kind, image, ruleset, shows, cwd, given, argv, user, isTerminal, files, variables } = input;
  const [first = '', ...rest] = argv;
  refuseOdd(kind, image);
  return [
    ...['run', '--rm', '--interactive', ...(isTerminal ? ['--tty'] : [])],
    ...given,
    ...(kind === 'gvisor' ? ['--runtime=runsc'] : []),
    // An image that is fetched comes past nd7's proxy and record.
    ...['--pull=never', '--network=none', '--cap-drop=ALL', '--security-opt=no-new-privileges'],
    // Nothing of the image's runs before the gate, or beside what came through it.
    '--no-healthcheck',
    ...(kind === 'podman' ? ['--http-proxy=false'] : ownProxies(variables)),
    `--user=${user.uid}:${user.gid}`,
    ...(kind === 'podman' && user.uid !== 0 ? ['--userns=keep-id'] : []),
    ...[...viewOf(ruleset), ...shows.map(readOnly)].map((mount) => `--mount=${wordOf(mount, kind)}`),
    ...[`--workdir=${cwd}`, `--env-file=${files.environment}`, `--cidfile=${files.identity}`],
    ...[`--entrypoint=${first}`, image, ...rest],
  ];
}

/**
 * docker's client gives a container the proxies of its own configuration, with what signs in there, over those of a file of variables; not over these. No word
 * here is a secret: anybody on this machine can read it.
 */
function ownProxies(variables: Readonly<Record<string, string>>): string[] {
  const names = ['HTTP_PROXY', 'HTTPS_PROXY', 'ALL_PROXY', 'NO_PROXY', 'FTP_PROXY'];
  const valueOf = (name: string): string => (name === 'FTP_PROXY' ? '' : (variables[name] ?? ''));
  return names.flatMap((name) => [name, name.toLowerCase()].map((one) => `--env=${one}=${valueOf(name)}`));
}

type Mount = { path: string; source: string; isWritable: boolean } | { path: string; source: undefined };

const readOnly = ({ path, source }: Shown): Mount => ({ path, source, isWritable: false });

/** Of the person's files the image gets the project, what the policy opens in the home besides, and an empty home around it. */
function viewOf({ files, home, project }: Ruleset): Mount[] {
  const mounts: Mount[] = isWithin(home, project) || home === '/' ? [] : [{ path: home, source: undefined }];
  const open: string[] = [];
  for (const { path, access } of files.slice(1)) {
    const real = realOf(path);
    if (real === undefined || real === home || !(isWithin(real, home) || isWithin(real, project))) continue;
    if (access.read) mounts.push({ path: real, source: real, isWritable: access.write });
    else if (!open.some((one) => isWithin(real, one))) continue;
    else if (statSync(real).isDirectory()) mounts.push({ path: real, source: undefined });
    else mounts.push({ path: real, source: '/dev/null', isWritable: false });
    open.push(real);
  }
  return mounts;
}

function wordOf(mount: Mount, kind: EngineKind): string {
  for (const path of [mount.path, mount.source ?? ''])
    if (/[,"\p{Cc}]/u.test(path))
      throw new CliError(
        2,
        `${JSON.stringify(path)} cannot be mounted by ${programOf(kind)}: its name has a comma, a quote or a control character`,
        'Give it another name.',
        'odd-name',
      );
  if (mount.source === undefined) return `type=tmpfs,target=${mount.path},tmpfs-mode=1777`;
  return `type=bind,source=${mount.source},target=${mount.path}${mount.isWritable ? '' : ',readonly'}`;
}

/** An image's name is a word of the engine's command line that nothing marks as one. */
function refuseOdd(kind: EngineKind, image: string): void {
  if (!/^[A-Za-z0-9][A-Za-z0-9._/:@-]*$/.test(image))
    throw new CliError(
      2,
      `${JSON.stringify(image)} is no name of an image for ${kind}`,
      'Say --image NAME[:TAG], of letters, digits and . _ / : @ -',
      'odd-name',
    );
}

/** The file of variables, and the names that it cannot have. The search path is the image's own. */
export function environmentFile(variables: Readonly<Record<string, string>>): { text: string; left: string[] } {
  const all = Object.entries(variables).filter(([name]) => name !== 'PATH');
  const fits = ([name, value]: [string, string]): boolean =>
    /^[A-Za-z_][A-Za-z0-9_]*$/.test(name) && !/[\r\n\0]/.test(value);
  const left = all.filter((one) => !fits(one)).map(([name]) => name);
  return {
    text: all
      .filter(fits)
      .map(([name, value]) => `${name}=${value}\n`)
      .join(''),
    left,
  };
}

function realOf(path: string): string | undefined {
  return existsSync(path) ? realpathSync(path) : undefined;
}
