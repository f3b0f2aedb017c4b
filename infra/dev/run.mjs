#!/usr/bin/env node
// What `npm start`, `npm test`, `npm run tour` and `npm run bench` run: install what the lock names, build what changed,
// then load the rest. It imports nothing but Node itself, because node_modules may not be there yet.
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

const root = join(dirname(fileURLToPath(import.meta.url)), '..', '..');
const [task = '', ...args] = process.argv.slice(2);

function stop(message, code = 1) {
  process.stderr.write(`nd7: ${message}\n`);
  process.exit(code);
}

const [major, minor] = process.versions.node.split('.').map(Number);
if (major < 20 || (major === 20 && minor < 19))
  stop(`Node ${process.versions.node} is too old: nd7 needs 20.19 or newer`, 2);
process.chdir(root);

// Not before the version is known to have what this takes from Node.
const { NAMES, readOptions } = await import('./options.mjs');
if (!NAMES.includes(task)) stop(`usage: node infra/dev/run.mjs ${NAMES.join('|')}`, 2);
const told = readOptions(task, args, root);
if (told.print !== undefined) {
  (told.code === 0 ? process.stdout : process.stderr).write(`${told.print}\n`);
  process.exit(told.code);
}

const colour = process.stdout.isTTY === true && !process.env.NO_COLOR;
const dim = (text) => (colour ? `\x1b[2m${text}\x1b[0m` : text);

/** Runs a command; its output is shown only when it fails. */
function quietly(label, command, commandArgs, env = {}) {
  const start = performance.now();
  process.stdout.write(`${label} … `);
  const run = spawnSync(command, commandArgs, {
    cwd: root,
    encoding: 'utf8',
    env: { ...process.env, ...env },
    maxBuffer: 1 << 28,
  });
  if (run.error !== undefined || run.status !== 0) {
    process.stdout.write('failed\n');
    process.stderr.write(`${run.stdout ?? ''}${run.stderr ?? ''}${run.error?.message ?? ''}\n`);
    stop(`${label} failed (${command} ${commandArgs.join(' ')})`);
  }
  process.stdout.write(`${dim(`${((performance.now() - start) / 1000).toFixed(1)} s`)}\n`);
}

function install() {
  const lock = createHash('sha256').update(readFileSync('package-lock.json')).update(process.version).digest('hex');
  const stamp = 'node_modules/.nd7-installed';
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === lock) return;
  const npm = process.env.npm_execpath;
  const [command, first] = npm === undefined ? ['npm', []] : [process.execPath, [npm]];
  quietly('Installing packages', command, [...first, 'ci', '--no-progress']);
  writeFileSync(stamp, lock);
}

/** Name, size and time of every source file: what a build depends on. */
function fingerprint() {
  const hash = createHash('sha256').update(process.version).update(statSync('package-lock.json').mtimeMs.toString());
  const skip = new Set(['node_modules', 'dist', 'build', 'coverage', 'test-results.json', '.nx']);
  const visit = (folder) => {
    for (const entry of readdirSync(folder, { withFileTypes: true }).sort((a, b) => (a.name < b.name ? -1 : 1))) {
      if (skip.has(entry.name)) continue;
      const path = join(folder, entry.name);
      if (entry.isDirectory()) visit(path);
      else {
        const { size, mtimeMs } = statSync(path);
        hash.update(`${relative(root, path)} ${size} ${mtimeMs}\n`);
      }
    }
  };
  for (const folder of ['apps', 'libs', 'native', 'infra']) if (existsSync(folder)) visit(folder);
  return hash.digest('hex');
}

function build() {
  const now = fingerprint();
  const stamp = '.nd7-dev/built';
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === now && existsSync('infra/dev/dist/start.js')) return;
  rmSync(stamp, { force: true });
  quietly('Building', process.execPath, ['node_modules/nx/dist/bin/nx.js', 'run-many', '-t', 'build'], {
    NX_DAEMON: 'false',
    CI: 'true',
    FORCE_COLOR: '0',
  });
  mkdirSync('.nd7-dev', { recursive: true, mode: process.getuid?.() === 0 ? 0o711 : 0o700 });
  writeFileSync(stamp, now);
}

install();
build();
const { main } = await import(pathToFileURL(join(root, 'infra', 'dev', 'dist', `${task}.js`)).href);
process.exitCode = await main(root, told.values, told.names);
