// Builds the front: `node native/front/build.mjs` → native/front/build/nd7, and with --sanitize a build for the tests beside it.
// Where there is no C compiler it says so and ends well: nd7 is then its JavaScript alone.
import { spawnSync } from 'node:child_process';
import { chmodSync, mkdirSync, readdirSync, renameSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { join } from 'node:path';

const here = fileURLToPath(new URL('.', import.meta.url));
const build = join(here, 'build');
const shim = join(here, '../shim/src');
// How a program of nd7's finds its home and whether it is its user's alone is the shim's.
const shared = ['conf.c', 'io.c'].map((name) => join(shim, name));
const sources = readdirSync(join(here, 'src'))
  .filter((name) => name.endsWith('.c'))
  .map((name) => join(here, 'src', name));
const strict = [
  '-std=gnu11',
  '-Wall',
  '-Wextra',
  '-Werror',
  '-Wshadow',
  '-Wconversion',
  '-fstack-protector-strong',
  '-I',
  join(here, 'src'),
  '-I',
  shim,
];
const release = ['-O2', '-D_FORTIFY_SOURCE=2', '-fPIE', '-static-pie', '-Wl,-z,now,-z,relro,-z,noexecstack', '-s'];
const sanitized = ['-O1', '-g', '-fsanitize=address,undefined', '-fno-sanitize-recover=all', '-fno-omit-frame-pointer'];

export function findCompiler() {
  return [process.env.CC, 'cc', 'gcc', 'clang'].find(
    (cc) => cc && spawnSync(cc, ['--version'], { stdio: 'ignore' }).status === 0,
  );
}

/** Compiles to a temporary name and renames: a front that is running is not written to. */
function compile(cc, flags, files, name) {
  const out = join(build, name);
  const result = spawnSync(cc, [...strict, ...flags, ...files, '-o', `${out}.${process.pid}`], { encoding: 'utf8' });
  if (result.status !== 0) return { name, said: result.stderr };
  chmodSync(`${out}.${process.pid}`, 0o755);
  renameSync(`${out}.${process.pid}`, out);
  return undefined;
}

export function buildFront({ sanitize = false } = {}) {
  if (process.platform !== 'linux') return { skipped: `the front is for Linux, not for ${process.platform}` };
  const cc = findCompiler();
  if (!cc) return { skipped: 'no C compiler (cc, gcc or clang) was found' };
  mkdirSync(build, { recursive: true });
  chmodSync(build, 0o755);
  const fuzz = [join(here, 'src/frames.c'), join(shim, 'io.c'), join(here, 'test/fuzz.c')];
  const failure =
    compile(cc, release, [...sources, ...shared], 'nd7') ??
    (sanitize
      ? (compile(cc, sanitized, [...sources, ...shared], 'nd7-sanitized') ?? compile(cc, sanitized, fuzz, 'fuzz'))
      : undefined);
  if (failure) throw new Error(`${failure.name} does not compile:\n${failure.said}`);
  return { front: join(build, 'nd7') };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { front, skipped } = buildFront({ sanitize: process.argv.includes('--sanitize') });
  console.log(front ?? skipped);
}
