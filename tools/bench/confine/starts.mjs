// What a start costs: the launcher with a plan that is ready, and `nd7 run` as it is typed, each in turns with bwrap, which makes the same
// namespaces and mounts and does not look whether they hold. One C program starts them all and measures from posix_spawn to the end.
import { existsSync, mkdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { encodePlan, findLauncher, prepare } from '@nd7/confine';
import { findCompiler } from '../../../native/compile.mjs';
import { verdict } from '../judge/verdict.mjs';
import { peers } from './peers.mjs';
import { find, median, nd7, root } from './place.mjs';

/** What `nd7 run` by the front may cost, in starts of bwrap. */
const BY_FRONT = 3;
/** What a first session may cost beyond one start of Node. */
const BEYOND_NODE_MS = 15;
const PROGRAM = '/bin/true';

/** Arguments with which bwrap makes the mounts of a view. */
function bwrapArguments({ view, cwd }) {
  const scratch = view.filter(({ kind }) => kind === 'scratch').map(({ path }) => path);
  const isThere = (path) => existsSync(path) && !scratch.some((folder) => path.startsWith(`${folder}/`));
  const cover = (path) => (statSync(path).isDirectory() ? ['--tmpfs', path] : ['--ro-bind', '/dev/null', path]);
  const mounts = view.flatMap((one) => {
    if (one.kind === 'writable') return ['--bind', one.path, one.path];
    if (one.kind === 'show') return ['--ro-bind', one.source, one.path];
    if (one.kind === 'scratch') return ['--tmpfs', one.path];
    return isThere(one.path) ? cover(one.path) : [];
  });
  const namespaces = ['--unshare-user', '--unshare-pid', '--unshare-net', '--unshare-ipc', '--die-with-parent'];
  return [...namespaces, '--ro-bind', '/', '/', '--dev', '/dev', '--proc', '/proc', ...mounts, '--chdir', cwd];
}

async function planned(place) {
  const { rulesetFor } = await import(join(root, 'apps/agent/dist/confine/ruleset.js'));
  const { home, project, nd7Home, environment } = place;
  const { ruleset } = rulesetFor({ profile: null, agent: undefined, home, project, nd7Home, environment });
  const made = (isObserved) =>
    prepare({
      ...{ ruleset, argv: [PROGRAM], environment, cwd: project, nd7Home, userNamespace: true, isFront: false },
      ...{ isRoot: process.geteuid() === 0, variables: {}, isObserved, routes: [], resolvesNames: false },
      listeners: [{ kind: 'stream', address: '127.0.0.1', port: 3128 }],
    });
  const [whole, plain] = [made(true), made(false)];
  const file = (name, plan) => {
    const path = join(place.base, `plan.${name}`);
    writeFileSync(path, encodePlan(plan));
    return `@${path}`;
  };
  const plans = {
    whole: file('whole', whole.plan),
    unobserved: file('unobserved', plain.plan),
    bare: file('bare', { ...plain.plan, selfTest: undefined }),
  };
  const clean = () => [whole, plain].forEach((one) => one.clean());
  return { plans, clean, bwrap: bwrapArguments(plain.plan) };
}

/** Milliseconds of each run, by the names of the contenders. */
async function inTurns(place, starter, rounds, contenders) {
  const args = Object.values(contenders).flatMap((words) => ['--', ...words]);
  const said = await place.run(starter, [String(rounds), join(place.base, 'stdin'), '1', ...args]);
  const rows = said.trim().split('\n');
  return Object.fromEntries(
    Object.keys(contenders).map((name, i) => [name, rows[i].split(' ').map((ns) => Number(ns) / 1e6)]),
  );
}

/** Prints a row for each contender and returns the p50s. */
function table(took, against) {
  const p50 = Object.fromEntries(Object.entries(took).map(([name, ms]) => [name, median(ms)]));
  console.log(`| ${PROGRAM} by | p50 ms | p95 ms | min ms | × ${against} |\n|---|---:|---:|---:|---:|`);
  for (const [name, ms] of Object.entries(took)) {
    const sorted = ms.toSorted((a, b) => a - b);
    const p95 = sorted[Math.floor(sorted.length * 0.95)];
    const ratio = p50[against] === undefined ? '' : (p50[name] / p50[against]).toFixed(2);
    console.log(`| ${name} | ${p50[name].toFixed(1)} | ${p95.toFixed(1)} | ${sorted[0].toFixed(1)} | ${ratio} |`);
  }
  return p50;
}

export async function measureStarts(place, rounds) {
  const launcher = await findLauncher();
  const cc = findCompiler();
  if ('problem' in launcher || cc === undefined) {
    console.log(`skipped: ${launcher.problem ?? 'no C compiler'}`);
    return;
  }
  const starter = join(place.base, 'spawn');
  await place.run(cc, ['-O2', '-Wall', '-Wextra', '-o', starter, join(import.meta.dirname, '..', 'spawn.c')]);
  writeFileSync(join(place.base, 'stdin.0'), '');
  const bwrap = find('bwrap');
  if (bwrap === undefined) console.log('bwrap: not installed (Debian: bubblewrap), so nothing to compare with');
  const { plans, clean, bwrap: args } = await planned(place);
  const byBwrap = bwrap === undefined ? {} : { bwrap: [bwrap, ...args, PROGRAM] };
  const by = (plan) => [plan, launcher.path, '3'];
  const alone = {
    'posix_spawn, no boundary': [PROGRAM],
    ...byBwrap,
    launcher: by(plans.whole),
    'launcher without supervisor': by(plans.unobserved),
    'launcher without supervisor and self-test': by(plans.bare),
  };
  try {
    await inTurns(place, starter, 3, alone); // warm
    const p50 = table(await inTurns(place, starter, rounds * 5, alone), 'bwrap');
    if (bwrap !== undefined)
      console.log(
        `launcher / bwrap: ${(p50.launcher / p50.bwrap).toFixed(2)} × (at most 1.0: ${verdict(p50.launcher <= p50.bwrap)})\n`,
      );
  } finally {
    clean();
  }

  await measureTyped(place, starter, rounds, byBwrap);
}

/** The front as `nd7 init` puts it into a home. */
async function frontOf({ nd7Home }) {
  const from = (name) => import(join(root, 'apps/agent/dist/recorder', name));
  const [{ installFront }, { writeShimConf }] = await Promise.all([from('front.js'), from('settings.js')]);
  mkdirSync(join(nd7Home, 'run'), { recursive: true, mode: 0o700 });
  writeShimConf(nd7Home, 'best-effort');
  const front = await installFront(nd7Home, { state: 'there' });
  if ('problem' in front) throw new Error(front.problem);
  return front.path;
}

/** `nd7 run` by each way that it is typed. None of them has the -- that is usually typed: the starter takes it for the next contender. */
async function measureTyped(place, starter, rounds, byBwrap) {
  const front = await frontOf(place);
  const socket = join(place.nd7Home, 'run/host');
  // A host whose socket is taken away ends.
  const cold = ['/bin/sh', '-c', 'rm -f "$1"; exec "$2" run "$3"', 'sh', socket, front, PROGRAM];
  const npx = find('npx');
  const others = peers(place, PROGRAM);
  const typed = {
    'node -e 0': [process.execPath, '-e', '0'],
    ...byBwrap,
    'front, host resident': [front, 'run', PROGRAM],
    'node bin/nd7.js': [nd7, 'run', PROGRAM],
    ...others.contenders,
  };
  try {
    await inTurns(place, starter, 2, typed);
    const p50 = table(await inTurns(place, starter, rounds, typed), 'bwrap');
    if (p50.bwrap !== undefined) {
      const ratio = p50['front, host resident'] / p50.bwrap;
      console.log(`nd7 run / bwrap: ${ratio.toFixed(2)} × (at most ${BY_FRONT}: ${verdict(ratio <= BY_FRONT)})\n`);
    }
    const first = {
      'node -e 0': typed['node -e 0'],
      'front, no host yet': cold,
      'node bin/nd7.js': typed['node bin/nd7.js'],
      ...(npx === undefined ? {} : { 'npx nd7': [npx, '--prefix', root, '--no', 'nd7', 'run', PROGRAM] }),
    };
    const started = table(await inTurns(place, starter, Math.ceil(rounds / 2), first), 'node -e 0');
    const beyond = started['front, no host yet'] - started['node -e 0'];
    console.log(
      `the first nd7 run: one start of Node + ${beyond.toFixed(1)} ms (at most + ${BEYOND_NODE_MS}: ${verdict(beyond <= BEYOND_NODE_MS)})`,
    );
  } finally {
    rmSync(socket, { force: true });
    others.clean();
  }
}
