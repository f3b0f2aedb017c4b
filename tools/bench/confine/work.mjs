// What work costs inside: git, npm and make in one session of `nd7 run`, in turns with the same commands outside, in the same folders.
import { createHash } from 'node:crypto';
import { copyFileSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { loadavg } from 'node:os';
import { join } from 'node:path';
import { verdict } from '../judge/verdict.mjs';
import { find, median, nd7, root } from './place.mjs';

/** What holds a session; the last asks about every open that reads. */
export const TIERS = ['T1', 'T2', 'T3', 'T2-strict'];
/** Promised of the first alone. */
const MOST = 1.1;
const FILES = 2000;
const PACKAGES = 40;
const FILES_OF_A_PACKAGE = 50;
const UNITS = 40;

const text = (seed, lines) =>
  Array.from({ length: lines }, (_, i) => `export const value_${seed}_${i} = ${seed * 31 + i};\n`).join('');

const git = (place, cwd, ...args) =>
  place.run('git', ['-c', 'user.name=bench', '-c', 'user.email=bench@localhost', ...args], { cwd });

/** This repository as it is committed, and a branch beside it that has many files more. */
async function repository(place) {
  const cwd = join(place.project, 'repository');
  if (find('git') === undefined) return { skipped: 'git: not installed' };
  if (!existsSync(join(root, '.git'))) return { skipped: 'git: this copy of nd7 is no repository' };
  await place.run('git', ['clone', '--quiet', '--no-hardlinks', root, cwd]);
  await git(place, cwd, 'checkout', '--quiet', '-b', 'few');
  await git(place, cwd, 'checkout', '--quiet', '-b', 'many');
  for (let i = 0; i < FILES; i++) {
    const folder = join(cwd, 'generated', String(i % 50));
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, `file-${i}.ts`), text(i, 40));
  }
  await git(place, cwd, 'add', 'generated');
  await git(place, cwd, 'commit', '--quiet', '-m', 'Many files');
  await git(place, cwd, 'checkout', '--quiet', 'few');
  return { cwd };
}

/** A package whose dependencies are tarballs beside it: `npm ci` asks no network. */
async function npmProject(place) {
  const npm = find('npm');
  if (npm === undefined || find('tar') === undefined) return { skipped: 'npm or tar: not installed' };
  const cwd = join(place.project, 'npm');
  const locked = {};
  mkdirSync(join(cwd, 'tarballs'), { recursive: true });
  for (let i = 0; i < PACKAGES; i++) {
    const name = `bench-${i}`;
    const folder = join(place.base, 'pack', 'package');
    mkdirSync(join(folder, 'lib'), { recursive: true });
    writeFileSync(join(folder, 'package.json'), JSON.stringify({ name, version: '1.0.0' }));
    for (let f = 0; f < FILES_OF_A_PACKAGE; f++) writeFileSync(join(folder, 'lib', `${f}.js`), text(i * 100 + f, 30));
    const file = join(cwd, 'tarballs', `${name}.tgz`);
    await place.run('tar', ['-czf', file, '-C', join(place.base, 'pack'), 'package']);
    rmSync(folder, { recursive: true });
    const integrity = `sha512-${createHash('sha512').update(readFileSync(file)).digest('base64')}`;
    locked[name] = { version: '1.0.0', resolved: `file:tarballs/${name}.tgz`, integrity };
  }
  const own = {
    name: 'bench',
    version: '1.0.0',
    dependencies: Object.fromEntries(Object.entries(locked).map(([name, { resolved }]) => [name, resolved])),
  };
  const packages = Object.fromEntries(Object.entries(locked).map(([name, one]) => [`node_modules/${name}`, one]));
  writeFileSync(join(cwd, 'package.json'), JSON.stringify(own));
  writeFileSync(
    join(cwd, 'package-lock.json'),
    JSON.stringify({ ...own, lockfileVersion: 3, requires: true, packages: { '': own, ...packages } }),
  );
  return { cwd };
}

function cProject(place) {
  if (find('make') === undefined || find('cc') === undefined) return { skipped: 'make or cc: not installed' };
  const cwd = join(place.project, 'c');
  mkdirSync(cwd);
  const units = Array.from({ length: UNITS }, (_, i) => `unit_${i}`);
  for (const [i, name] of units.entries()) {
    const functions = Array.from(
      { length: 30 },
      (_, f) =>
        `int ${name}_${f}(int x) { int s = ${i}; for (int k = 0; k < x; k++) s += k * ${f} ^ s >> 3; return s; }\n`,
    );
    writeFileSync(
      join(cwd, `${name}.c`),
      `#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n${functions.join('')}`,
    );
  }
  writeFileSync(join(cwd, 'main.c'), 'int unit_0_1(int);\nint main(void) { return unit_0_1(2) == 77; }\n');
  const objects = ['main', ...units].map((name) => `${name}.o`).join(' ');
  writeFileSync(join(cwd, 'Makefile'), `program: ${objects}\n\tcc -o $@ $^\nclean:\n\trm -f *.o program\n`);
  return { cwd };
}

/** Calls that the supervisor carries out, and starts of programs, of which it is told: as strace counts them outside. */
async function countCalls(place, cwd, before, command) {
  const strace = find('strace');
  if (strace === undefined) return undefined;
  if (before !== undefined) await place.run(before[0], before.slice(1), { cwd });
  const out = join(place.base, 'calls');
  const names = ['open', 'openat', 'creat', 'mkdir', 'mkdirat', 'mknod', 'mknodat', 'symlink', 'symlinkat', 'link'];
  const more = ['linkat', 'rename', 'renameat', 'renameat2', 'truncate', 'umask', 'execve', 'execveat'];
  const trace = [...names, ...more].map((name) => `?${name}`).join(',');
  try {
    await place.run(strace, ['-f', '-qq', '-e', 'signal=none', '-e', `trace=${trace}`, '-o', out, ...command], { cwd });
  } catch {
    return undefined; // It may not be allowed here.
  }
  const opensToRead = /^\d+ +open(at)?\((?!.*O_(WRONLY|RDWR|CREAT|TRUNC|TMPFILE))/;
  return readFileSync(out, 'utf8')
    .split('\n')
    .filter((line) => /^\d+ +[a-z]/.test(line) && !opensToRead.test(line)).length;
}

/** A session of a tier, in which the worker waits. */
async function inside(place, tier, node) {
  const [name] = tier.split('-');
  const home = join(place.base, 'strict');
  let env = place.environment;
  if (tier === 'T2-strict') {
    const policy = JSON.parse(readFileSync(join(place.nd7Home, 'policy.jsonc'), 'utf8'));
    mkdirSync(home, { mode: 0o700 });
    writeFileSync(join(home, 'policy.jsonc'), JSON.stringify({ ...policy, patterns: 'strict' }), { mode: 0o600 });
    env = { ...env, ND7_HOME: home };
  }
  const args = ['run', '--tier', name, '--'];
  // Where patterns are strict a mask holds in the project, and elsewhere in this tier it does not: so it is known what is measured.
  const script = ['-c', 'cat .env >/dev/null 2>&1 && echo read || echo masked'];
  const said = (await place.run(nd7, [...args, 'sh', ...script], { env })).trim();
  const wanted = tier === 'T2' || tier === 'T3' ? 'read' : 'masked';
  if (said !== wanted) throw new Error(`${tier}: a masked name can be ${said}, and not ${wanted}`);
  return place.converse(nd7, [...args, ...node], { env });
}

export async function measureWork(place, scale, tiers = ['T1']) {
  copyFileSync(join(import.meta.dirname, 'worker.mjs'), join(place.project, 'worker.mjs'));
  const [repo, npm, c] = [await repository(place), await npmProject(place), cProject(place)];
  const npmCi = ['npm', 'ci', '--offline', '--no-audit', '--no-fund', '--ignore-scripts', '--cache', '../npm-cache'];
  const work = [
    { name: 'git status', ...repo, command: ['git', 'status'], rounds: 30 },
    {
      name: `git checkout, ${FILES} files there and away`,
      ...repo,
      command: ['sh', '-c', 'git checkout --quiet many && git checkout --quiet few'],
      rounds: 4,
    },
    { name: `npm ci, ${PACKAGES * FILES_OF_A_PACKAGE} files of tarballs`, ...npm, command: npmCi, rounds: 4 },
    {
      name: 'grep -r',
      ...repo,
      command: ['sh', '-c', 'grep -r nothing-has-this-word-in-it . >/dev/null; true'],
      rounds: 8,
    },
    { name: `make -j2, ${UNITS} units`, ...c, before: ['make', 'clean'], command: ['make', '-j2'], rounds: 4 },
  ];
  const node = [process.execPath, join(place.project, 'worker.mjs')];
  writeFileSync(join(place.project, '.env'), 'KEY=value\n');
  const sides = { outside: place.converse(node[0], node.slice(1)) };
  for (const tier of tiers) sides[tier] = await inside(place, tier, node);
  const load = loadavg()[0];
  const rows = [];
  for (const { name, skipped, cwd, before, command, rounds } of work) {
    if (skipped !== undefined) {
      console.log(`${name}: skipped: ${skipped}`);
      continue;
    }
    const took = Object.fromEntries(Object.keys(sides).map((side) => [side, []]));
    for (let round = -1; round < Math.max(2, Math.round(rounds * scale)); round++)
      for (const [side, { ask }] of Object.entries(sides)) {
        const { ms, failed } = await ask({ cwd, before, command });
        if (failed !== undefined) throw new Error(`${side}: ${failed}`);
        if (round >= 0) took[side].push(ms); // The first time is for warming.
      }
    rows.push({ name, took, calls: await countCalls(place, cwd, before, command) });
  }
  for (const { end } of Object.values(sides)) await end();
  if (find('strace') === undefined) console.log('strace: not installed, so that calls are not counted');
  console.log(`load ${load.toFixed(1)} before, ${loadavg()[0].toFixed(1)} after`);
  console.log(
    '| work | tier | outside p50 ms | inside p50 ms | inside / outside | of the least | at most 1.10 | calls answered in T1 | a second |\n|---|---|---:|---:|---:|---:|---|---:|---:|',
  );
  for (const { name, took, calls } of rows)
    for (const tier of tiers) {
      const [without, within] = [median(took.outside), median(took[tier])];
      const ratio = within / without;
      const counted = calls === undefined || tier !== 'T1' ? ' | ' : `${calls} | ${Math.round(calls / (within / 1e3))}`;
      const least = Math.min(...took[tier]) / Math.min(...took.outside);
      const held = tier === 'T1' ? verdict(ratio <= MOST) : '';
      console.log(
        `| ${name} | ${tier} | ${without.toFixed(1)} | ${within.toFixed(1)} | ${ratio.toFixed(2)} | ${least.toFixed(2)} | ${held} | ${counted} |`,
      );
    }
}
