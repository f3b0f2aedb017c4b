// The probes of tests/escape inside nd7's tiers and inside other sandboxes, in one run on one machine: what gets out by class of attempt, and what
// does not go on working. Each sandbox is set up as hard as its own options allow while the project can be worked in; docs/peers.md has the table and the reasons.
// Must: no tier T1 or T2 of nd7 lets more out than any other.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, relative } from 'node:path';
import { parseArgs } from 'node:util';
import { FROM, cache } from './confine/peers.mjs';
import { root } from './confine/place.mjs';
import { verdict } from './judge/verdict.mjs';

const WS = '{WS}';
const HOME = '{HOME}';
/** What of a home is hidden where a sandbox takes a list. */
const SECRETS = ['.ssh', '.aws', '.gnupg', '.netrc', '.git-credentials', '.config/gh', '.npmrc', '.docker', '.kube'];
const MORE_SECRETS = ['.bash_history', '.claude/.credentials.json', 'other', 'run'];
/** Names in the project that something outside runs or trusts later, and that are there at the start: none of the others protects one that is not. */
const LATER = ['.git/hooks', '.git/config', '.git/info', '.claude', '.mcp.json', '.vscode', '.codex'];
LATER.push('sub/.git', 'sub/.claude', 'ren/.git');
/** And names that are not there yet, where a sandbox takes those. */
const NAMES = [...LATER, '.cursor', '.gemini', '.github/hooks', '.envrc'];
/** Variables are a matter of who starts these two. */
const WITHOUT = ['env', '-u', 'AWS_SECRET_ACCESS_KEY'];
/** It tells programs of a temporary folder that its client makes. */
const WITH_TMP = ['sh', '-c', 'mkdir -p /tmp/claude; exec "$@"', 'sh'];
const MACHINE = '/home/dev';

const quoted = (pairs) => pairs.map(([path, access]) => `"${path}" = "${access}"`).join('\n');
const CODEX_PROFILE = `[permissions.hard]
extends = ":workspace"
[permissions.hard.filesystem]
${quoted([...SECRETS, ...MORE_SECRETS].map((name) => [`${MACHINE}/${name}`, 'deny']))}
"/tmp" = "read"
[permissions.hard.filesystem.":workspace_roots"]
${quoted([...NAMES.map((name) => [name, 'read']), ['.env', 'deny']])}
`;

const inPeers = (path) => `/opt/peers/${relative(realpathSync(cache), realpathSync(path))}`;
const isCached = (path) => !relative(realpathSync(cache), realpathSync(path)).startsWith('..');
const seen = (path) => (isCached(path) ? inPeers(path) : path);

/** Words before the program, by the sandbox's name; `extra` lies in the home of the machine. */
const SANDBOXES = {
  none: { words: () => [] },
  'nd7 T1': nd7('T1'),
  'nd7 T2': nd7('T2'),
  'nd7 T3': nd7('T3'),
  'nd7 --in bwrap': nd7('bwrap', '--in'),
  bwrap: {
    from: FROM.bwrap,
    version: (path) => said(path, '--version'),
    words: (path) => [
      path,
      ...['--ro-bind', '/', '/', '--dev', '/dev', '--proc', '/proc', '--tmpfs', '/tmp', '--tmpfs', '/var/tmp'],
      ...['--tmpfs', HOME, '--bind', WS, WS, '--ro-bind', '/dev/null', `${WS}/.env`],
      ...LATER.flatMap((name) => ['--ro-bind', `${WS}/${name}`, `${WS}/${name}`]),
      ...[
        '--unshare-all',
        '--unshare-user',
        '--disable-userns',
        '--die-with-parent',
        '--new-session',
        '--cap-drop',
        'ALL',
      ],
      ...['--unsetenv', 'AWS_SECRET_ACCESS_KEY', '--chdir', WS, '--'],
    ],
  },
  firejail: {
    from: FROM.firejail,
    version: (path) => said(path, '--version'),
    words: (path) => [
      path,
      ...[
        '--quiet',
        '--noprofile',
        '--net=none',
        '--caps.drop=all',
        '--nonewprivs',
        '--noroot',
        '--seccomp=io_uring_setup,io_uring_enter,io_uring_register',
        '--protocol=unix,inet,inet6',
        '--private-tmp',
      ],
      ...['--private-dev', '--restrict-namespaces', '--rmenv=AWS_SECRET_ACCESS_KEY'],
      ...[`--read-only=${HOME}`, `--read-write=${WS}`],
      ...[...SECRETS, ...MORE_SECRETS].map((name) => `--blacklist=${HOME}/${name}`),
      `--blacklist=${WS}/.env`,
      ...LATER.map((name) => `--read-only=${WS}/${name}`),
    ],
  },
  srt: {
    from: FROM.srt,
    version: (path) => packageOf(path, '@anthropic-ai/sandbox-runtime'),
    words: (path) => [...WITHOUT, ...WITH_TMP, '/opt/node', seen(path), '--settings', `${HOME}/.srt-settings.json`],
    extra: {
      '.srt-settings.json': JSON.stringify({
        network: { allowedDomains: [], deniedDomains: [] },
        filesystem: {
          denyRead: [...SECRETS, ...MORE_SECRETS].map((name) => `${MACHINE}/${name}`).concat(`${MACHINE}/proj/.env`),
          allowWrite: [`${MACHINE}/proj`, '/tmp'],
          denyWrite: NAMES.map((name) => `${MACHINE}/proj/${name}`),
        },
      }),
    },
  },
  codex: {
    from: FROM.codex,
    version: (path) => said(path, '--version'),
    words: (path) => [...WITHOUT, ...codex(path, 'hard')],
    extra: { '.codex-home/config.toml': CODEX_PROFILE },
  },
  'codex as it comes': {
    from: FROM.codex,
    version: (path) => said(path, '--version'),
    words: (path) => codex(path, ':workspace'),
    extra: { '.codex-home/config.toml': '' },
  },
};

function nd7(boundary, option = '--tier') {
  return { words: () => ['/opt/node', '/opt/nd7/apps/agent/bin/nd7.js', 'run', option, boundary, '--'] };
}

function codex(path, profile) {
  return ['env', `CODEX_HOME=${HOME}/.codex-home`, seen(path), 'sandbox', '-P', profile, '-C', WS, '--'];
}

function said(path, ...args) {
  return /[0-9]+(\.[0-9]+)+/.exec(spawnSync(path, args, { encoding: 'utf8' }).stdout ?? '')?.[0] ?? '?';
}

function packageOf(path, name) {
  const file = realpathSync(path).split(`/${name}/`)[0] + `/${name}/package.json`;
  return existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')).version : '?';
}

/** Names of the probes by the headings under which they stand, and of what must go on working. */
function classes() {
  const found = [];
  for (const line of readFileSync(join(root, 'tests/escape/inside.sh'), 'utf8').split('\n')) {
    const heading = /^# ---- (.*)$/.exec(line)?.[1];
    if (heading !== undefined) found.push({ heading, names: [] });
    const name = /^[pw] ([a-z0-9-]+) /.exec(line)?.[1];
    if (name !== undefined) found.at(-1).names.push(name);
  }
  return found;
}

/** What became of each probe, by its name. */
function probe(scratch, name, { words, extra }, from) {
  // The folder of peers is what the machine is shown.
  const folder = mkdtempSync(join(cache, 'probed-'));
  for (const [file, text] of Object.entries(extra ?? {})) {
    mkdirSync(dirname(join(folder, file)), { recursive: true });
    writeFileSync(join(folder, file), text);
  }
  const run = spawnSync(join(root, 'tests/escape/run-probes.sh'), ['-u', '1000', name, ...words(from?.path)], {
    encoding: 'utf8',
    env: {
      ...{ PATH: process.env.PATH, NP: join(scratch, 'np'), NP_SHOW: root, NP_NODE: process.execPath },
      ...{ NP_PEERS: realpathSync(cache), NP_EXTRA: inPeers(folder) },
    },
  });
  rmSync(folder, { recursive: true, force: true });
  const lines = run.stdout
    .split('\n')
    .map((line) => /^(PERMITTED|DENIED|SKIP|WORKS|BROKEN|EFFECT-SEEN) ([a-z0-9-]+)/.exec(line));
  const outcome = new Map(lines.filter((line) => line !== null).map(([, what, probed]) => [probed, what]));
  // A machine or a sandbox that could not be built has no verdicts: its own words say why.
  if (outcome.size < 100)
    console.log(`${name}: did not run here: ${`${run.stdout}${run.stderr}`.trim().split('\n').slice(-5).join('\n  ')}`);
  return outcome.size < 100 ? undefined : outcome;
}

const count = (outcome, names, what) => names.filter((name) => outcome.get(name) === what).length;

function table(results) {
  const names = Object.keys(results);
  const attempts = classes().filter(({ heading }) => heading !== 'must keep working');
  const works = classes().find(({ heading }) => heading === 'must keep working')?.names ?? [];
  const row = (cells) => console.log(`| ${cells.join(' | ')} |`);
  row(['gets out, of', ...names]);
  row(['---', ...names.map(() => '---:')]);
  for (const { heading, names: probes } of attempts)
    row([`${heading} (${probes.length})`, ...names.map((name) => count(results[name], probes, 'PERMITTED'))]);
  const all = attempts.flatMap(({ names: probes }) => probes);
  const out = Object.fromEntries(names.map((name) => [name, count(results[name], all, 'PERMITTED')]));
  row([`**all** (${all.length})`, ...names.map((name) => `**${out[name]}**`)]);
  row([`goes on working (${works.length})`, ...names.map((name) => count(results[name], works, 'WORKS'))]);
  console.log('');
  for (const name of names.filter((one) => one !== 'none')) {
    const of = (what, probes) => probes.filter((one) => results[name].get(one) === what).join(', ') || '–';
    console.log(`${name}\n  gets out: ${of('PERMITTED', all)}\n  breaks: ${of('BROKEN', works)}`);
  }
  return out;
}

const { values } = parseArgs({
  options: { only: { type: 'string', multiple: true, default: Object.keys(SANDBOXES) } },
});
if (process.platform !== 'linux' || process.geteuid() !== 0)
  console.log('skipped: the probes build a machine of their own, which takes root on Linux');
else {
  mkdirSync(cache, { recursive: true });
  const scratch = mkdtempSync(join(tmpdir(), 'nd7-peers-'));
  const results = {};
  try {
    for (const name of values.only) {
      const sandbox = SANDBOXES[name];
      const from = sandbox.from?.();
      if (from !== undefined && 'problem' in from) {
        console.log(`${name}: ${from.problem}`);
        continue;
      }
      const outcome = probe(scratch, name, sandbox, from);
      if (outcome !== undefined) results[from === undefined ? name : `${name} ${sandbox.version(from.path)}`] = outcome;
    }
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
  const out = table(results);
  const others = Object.entries(out).filter(([name]) => !name.startsWith('nd7') && name !== 'none');
  for (const tier of ['nd7 T1', 'nd7 T2'].filter((one) => one in out)) {
    const least = Math.min(...others.map(([, number]) => number));
    if (others.length > 0)
      console.log(`\n${tier} lets ${out[tier]} out, the least of the others ${least}: ${verdict(out[tier] <= least)}`);
  }
}
