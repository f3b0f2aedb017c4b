// What programs inside trust where the proxy ends TLS for some hosts: the machine's own roots and, for those hosts, the session's authority.
import { randomBytes } from 'node:crypto';
import { readdirSync, readFileSync, realpathSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { rootCertificates } from 'node:tls';
import type { Shown } from '@nd7/confine';

/** Where distributions keep all roots in one file: Debian and its kin, Fedora and its kin, SUSE, Alpine and BSD. */
const BUNDLES = [
  '/etc/ssl/certs/ca-certificates.crt',
  '/etc/pki/tls/certs/ca-bundle.crt',
  '/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem',
  '/etc/ssl/ca-bundle.pem',
  '/etc/ssl/cert.pem',
];
/** Variables by which programs are told of a file of roots that they take in place of their own. */
const IN_PLACE = [
  'SSL_CERT_FILE',
  'REQUESTS_CA_BUNDLE',
  'CURL_CA_BUNDLE',
  'PIP_CERT',
  'CARGO_HTTP_CAINFO',
  'AWS_CA_BUNDLE',
  'GIT_SSL_CAINFO',
];
/** By which Node is told of roots besides its own. */
const BESIDES = 'NODE_EXTRA_CA_CERTS';
const [ALL, OURS] = ['/run/nd7-roots.pem', '/run/nd7-authority.pem'];

const PREFIX = '.roots-';
/** No start takes so long; once a session runs it holds them by itself. */
const LAID_MS = 60_000;

export interface Roots {
  /** Files that are shown inside. */
  shows: Shown[];
  environment: Record<string, string>;
  /** Takes away what was laid down. */
  clean(): void;
}

/** Lays the files down in `folder`, which is nd7's own. `authority`: its certificate (PEM). What the person's own variables name is in them. */
export function layRoots(folder: string, authority: string, environment: NodeJS.ProcessEnv): Roots {
  const bundles = [...new Set(BUNDLES.flatMap((path) => realFile(path) ?? []))];
  const [machines = rootCertificates.join('\n')] = bundles.map((path) => readFileSync(path, 'latin1'));
  const named = (name: string): string => textOf(environment[name]);
  const all = [machines, ...IN_PLACE.map(named), authority].join('\n');
  const ours = [named(BESIDES), authority].join('\n');
  sweep(folder);
  const made = [all, ours].map((text) => {
    const file = join(realpathSync(folder), `${PREFIX}${randomBytes(8).toString('hex')}`);
    writeFileSync(file, text, { mode: 0o644, flag: 'wx' });
    return file;
  });
  const [allFile = '', oursFile = ''] = made;
  return {
    shows: [...[...bundles, ALL].map((path) => ({ path, source: allFile })), { path: OURS, source: oursFile }],
    environment: { ...Object.fromEntries(IN_PLACE.map((name) => [name, ALL])), [BESIDES]: OURS },
    clean: () => made.forEach((file) => rmSync(file, { force: true })),
  };
}

/** Takes away what starts that were killed have left. */
function sweep(folder: string): void {
  for (const name of readdirSync(folder).filter((entry) => entry.startsWith(PREFIX))) {
    const path = join(folder, name);
    const laid = statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0;
    if (laid < Date.now() - LAID_MS) rmSync(path, { force: true });
  }
}

function realFile(path: string): string | undefined {
  try {
    return realpathSync(path);
  } catch {
    return undefined;
  }
}

/** What a variable of the person's names; it may name nothing. */
function textOf(path: string | undefined): string {
  try {
    return path === undefined || path === '' ? '' : readFileSync(path, 'latin1');
  } catch {
    return '';
  }
}
