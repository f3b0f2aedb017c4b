// Other boundaries, as somebody would type them. Those of npm come from the PATH, or from where tests keep real clients: fetched into there where
// they are not yet. Each is tried once; one that cannot be had, or does not run here, is named with the reason.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { find, root } from './place.mjs';

/** Where real clients are kept for tests. */
export const cache = process.env.ND7_TEST_CACHE ?? join(root, '.cache/clients');
const arch = process.arch === 'arm64' ? 'arm64' : 'x64';

/** A file of a package, or why it is not there. */
function fetched(spec, path) {
  const prefix = join(cache, spec.replaceAll('/', '+'));
  const at = path(join(prefix, 'node_modules'));
  if (at !== undefined && existsSync(at)) return { path: at };
  mkdirSync(prefix, { recursive: true });
  const args = ['install', '--no-audit', '--no-fund', '--no-save', '--prefix', prefix, spec];
  const npm = spawnSync('npm', args, { encoding: 'utf8', timeout: 600_000 });
  const got = path(join(prefix, 'node_modules'));
  if (got !== undefined && existsSync(got)) return { path: got };
  return { problem: `npm could not fetch ${spec}: ${(npm.stderr ?? '').trim().split('\n').at(-1) ?? ''}` };
}

/** Codex's own program below its package for this machine: its script on PATH starts Node first. */
function codexIn(modules) {
  const vendor = join(modules, `@openai/codex-linux-${arch}/vendor`);
  const target = existsSync(vendor) ? readdirSync(vendor)[0] : undefined;
  return target === undefined ? undefined : join(vendor, target, 'bin/codex');
}

const onPath = (name, or) => {
  const path = find(name);
  return path === undefined ? or() : { path };
};

const none = (packages) => ({ problem: `not installed (Debian: ${packages})` });
const SRT = '@anthropic-ai/sandbox-runtime@0.0.83';

/** Where each is, or why it is not there. */
export const FROM = {
  bwrap: () => onPath('bwrap', () => none('bubblewrap')),
  firejail: () => onPath('firejail', () => none('firejail')),
  codex: () => onPath('codex', () => fetched('@openai/codex@0.171.0', codexIn)),
  srt: () =>
    ['bwrap', 'socat', 'rg'].some((name) => find(name) === undefined)
      ? none('bubblewrap socat ripgrep')
      : onPath('srt', () => fetched(SRT, (modules) => join(modules, '.bin/srt'))),
};

/**
 * Contenders by name: words that run `program` with the project writable, the rest read-only, and no network.
 * None of the words is `--`, by which contenders are told apart.
 */
export function peers({ base, home, project, environment }, program) {
  const settings = join(base, 'srt.json');
  const filesystem = { denyRead: [], allowWrite: [project], denyWrite: [] };
  writeFileSync(settings, JSON.stringify({ network: { allowedDomains: [], deniedDomains: [] }, filesystem }));
  mkdirSync(cache, { recursive: true });
  // Codex lays helpers into its home, and refuses to in a temporary folder.
  const codexHome = mkdtempSync(join(cache, 'codex-home-'));
  const asked = {
    firejail: {
      from: FROM.firejail(),
      words: (path) => [path, '--quiet', '--noprofile', '--net=none', `--read-only=${home}`, program],
    },
    codex: {
      from: FROM.codex(),
      words: (path) => [
        '/usr/bin/env',
        `CODEX_HOME=${codexHome}`,
        path,
        'sandbox',
        '-P',
        ':workspace',
        '-C',
        project,
        program,
      ],
    },
    srt: {
      from: FROM.srt(),
      words: (path) => [path, '--settings', settings, program],
    },
  };
  const contenders = {};
  for (const [name, { from, words }] of Object.entries(asked)) {
    if ('problem' in from) {
      console.log(`${name}: ${from.problem}`);
      continue;
    }
    const [command, ...args] = words(from.path);
    const tried = spawnSync(command, args, { cwd: project, env: environment, encoding: 'utf8', timeout: 30_000 });
    if (tried.status === 0) contenders[name] = [command, ...args];
    else console.log(`${name}: does not run here: ${(tried.stderr ?? '').trim().split('\n').at(-1)}`);
  }
  return { contenders, clean: () => rmSync(codexHome, { recursive: true, force: true }) };
}
