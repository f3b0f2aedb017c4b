// What programs inside trust where the proxy ends TLS for some hosts: the machine's own roots and, for those hosts, the session's authority.
import { randomBytes } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, realpathSync, rmSync, statSync, writeFileSync } from 'node:fs';
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
/** By which npm takes a file in place of what Node reads: only where the person has named one. */
const WHERE_NAMED = ['NPM_CONFIG_CAFILE', 'npm_config_cafile'];
/** By which Node is told of roots besides its own. */
const BESIDES = 'NODE_EXTRA_CA_CERTS';
const [ALL, OURS] = ['/run/nd7-roots.pem', '/run/nd7-authority.pem'];

const PREFIX = '.roots-';
/** No start takes so long; once a session has a view it holds them by itself. */
const LAID_MS = 60_000;
/** Those that a session reads at their own places as long as it lives say whose they are. */
const READ = /^\.roots-(\d+)-[0-9a-f]{16}$/;

export interface Roots {
  /** Files that are shown inside. */
  shows: Shown[];
  environment: Record<string, string>;
  /** Takes away what was laid down. */
  clean(): void;
}

/**
 * Lays the files down in `folder`, which is nd7's own. `authority`: its certificate (PEM). What the person's own variables name is in them.
 * `hasView`: false where nothing can be shown in another's place: programs then know of them by variables alone, and read them where they lie.
 */
export function layRoots(folder: string, authority: string, environment: NodeJS.ProcessEnv, hasView = true): Roots {
  const bundles = [...new Set(BUNDLES.flatMap((path) => realFile(path) ?? []))];
  const [machines = rootCertificates.join('\n')] = bundles.map((path) => readFileSync(path, 'latin1'));
  const named = (name: string): string => textOf(environment[name]);
  const files = [...IN_PLACE, ...WHERE_NAMED.filter((name) => named(name) !== '')];
  const all = [machines, ...files.map(named), authority].join('\n');
  const ours = [named(BESIDES), authority].join('\n');
  sweep(folder);
  const whose = hasView ? '' : `${process.pid}-`;
  const made = [all, ours].map((text) => {
    const file = join(realpathSync(folder), `${PREFIX}${whose}${randomBytes(8).toString('hex')}`);
    writeFileSync(file, text, { mode: 0o644, flag: 'wx' });
    return file;
  });
  const [allFile = '', oursFile = ''] = made;
  const [allInside, oursInside] = hasView ? [ALL, OURS] : [allFile, oursFile];
  const laidOver = hasView ? [...bundles, ALL] : [allFile];
  return {
    shows: [...laidOver.map((path) => ({ path, source: allFile })), { path: oursInside, source: oursFile }],
    environment: { ...Object.fromEntries(files.map((name) => [name, allInside])), [BESIDES]: oursInside },
    clean: () => made.forEach((file) => rmSync(file, { force: true })),
  };
}

/** Takes away what starts that were killed have left. */
function sweep(folder: string): void {
  for (const name of readdirSync(folder).filter((entry) => entry.startsWith(PREFIX))) {
    const path = join(folder, name);
    const whose = READ.exec(name)?.[1];
    if (whose !== undefined) {
      if (!existsSync(`/proc/${whose}`)) rmSync(path, { force: true });
      continue;
    }
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
