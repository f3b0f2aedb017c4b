// What a grant, a denial or a request is about, and how it is written: on a command line, in a policy, in an entry.
import { parseHostRule, PolicyError, type PolicyFile, type Question } from '@nd7/policy';

export const RIGHTS = ['read', 'write', 'net', 'socket'] as const;
export type Right = (typeof RIGHTS)[number];

/** One thing that a session may come to do. */
export interface Wanted {
  right: Right;
  /** An absolute, normal path; `host:port` with `*.example.com` and `*` as in a policy; a socket's name or path. */
  what: string;
  /** Of a path: everything below it too. */
  below: boolean;
  /** Of a host: any protocol, not only TLS for this very name. */
  raw: boolean;
}

/** Longer than any path that the kernel takes and any host. */
export const MAX_WHAT = 4_095;

export function isRight(text: unknown): text is Right {
  return RIGHTS.some((right) => right === text);
}

/** A host and its ports in one spelling; the port is 443 where none is said, `ports` says otherwise. Throws PolicyError. */
export function hostText(text: string, otherwise = '443'): string {
  const [, bare, ports] = /^(\[[^\]]*\]|[^:]*)(?::(.*))?$/s.exec(text) ?? [];
  const local = LOOPBACK.has(bare ?? '');
  if (local && !/^[1-9]\d{0,4}$/.test(ports ?? ''))
    throw new PolicyError('bad-host', `"${text}" names no port of this machine`, 'Write localhost:3000.');
  const rule = parseHostRule(bare === undefined ? text : `${bare}:${ports ?? otherwise}`);
  const host = rule.host.includes(':') ? `[${rule.host}]` : rule.host;
  const said = rule.ports.map(({ from, to }) =>
    from === 1 && to === 65_535 ? '*' : from === to ? from : `${from}-${to}`,
  );
  return `${local ? 'localhost' : host}:${said.join(',')}`;
}

const LOOPBACK = new Set(['localhost', '127.0.0.1', '[::1]']);

/** The port of this machine's own loopback that a host means; undefined for every other host. */
export function loopbackPort({ right, what }: Pick<Wanted, 'right' | 'what'>): number | undefined {
  return right === 'net' && what.startsWith('localhost:') ? Number(what.slice('localhost:'.length)) : undefined;
}

type Document = PolicyFile['document'];

/** Policy text that allows all of this: what a grant is compiled from, and what a person writes to keep it. */
export function documentFor(all: readonly Wanted[]): Document {
  const of = (right: Right): Wanted[] => all.filter((one) => one.right === right);
  const paths = (right: Right): string[] => of(right).map(({ what }) => what);
  const [read, write, sockets] = [paths('read'), paths('write'), paths('socket')];
  const loopback = all.map(loopbackPort).filter((port) => port !== undefined);
  const hosts = of('net')
    .filter((one) => loopbackPort(one) === undefined)
    .map(({ what, raw }) => (raw ? { host: what, raw } : what));
  return {
    nd7: 1,
    ...(read.length + write.length === 0
      ? {}
      : {
          files: {
            ...(read.length === 0 ? {} : { read: { allow: read } }),
            ...(write.length === 0 ? {} : { write: { allow: write } }),
          },
        }),
    ...(hosts.length + loopback.length === 0
      ? {}
      : {
          network: { ...(hosts.length === 0 ? {} : { allow: hosts }), ...(loopback.length === 0 ? {} : { loopback }) },
        }),
    ...(sockets.length === 0 ? {} : { sockets: { allow: sockets } }),
  };
}

/** A small policy of its own, by whose name its rules are known. */
export function policyFor(name: string, all: readonly Wanted[]): PolicyFile {
  return { name, file: null, hash: null, document: documentFor(all), lineOf: () => null };
}

/** What the rules are asked to find out whether it is allowed; a wildcard and a socket by name have none. */
export function questionFor({ right, what }: Wanted): Question | undefined {
  const port = loopbackPort({ right, what });
  if (port !== undefined) return { about: 'loopback', port };
  if (right === 'net') return /[*,]|:\d+-/.test(what) ? undefined : { about: 'host', authority: what };
  if (right === 'socket') return what.startsWith('/') ? { about: 'socket', path: what } : undefined;
  return { about: right, path: what };
}

/** As a person types it: `write --below /srv/x`. */
export function wantedText({ right, what, below, raw }: Wanted): string {
  return [right, ...(below ? ['--below'] : []), ...(raw ? ['--raw'] : []), shellWord(what)].join(' ');
}

/** A word as a shell takes it. */
export function shellWord(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}

export function isSame(a: Wanted, b: Wanted): boolean {
  return a.right === b.right && a.what === b.what && a.below === b.below && a.raw === b.raw;
}
