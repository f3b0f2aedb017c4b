// Builds the launcher: `node native/launch/build.mjs` → native/launch/build/nd7-launch, and with --sanitize builds for the tests beside it.
// Where there is no C compiler it says so and ends well: `nd7 run` then says what is missing.
import { spawnSync } from 'node:child_process';
import { chmodSync, mkdirSync, readdirSync, renameSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { join } from 'node:path';
import { writeFoldTable } from '../observe/fold-table.mjs';

const here = fileURLToPath(new URL('.', import.meta.url));
const build = join(here, 'build');
const observe = join(here, '../observe/src');
// The supervisor is a process of the launcher, and so a part of its program.
const sources = [join(here, 'src'), observe].flatMap((folder) =>
  readdirSync(folder)
    .filter((name) => name.endsWith('.c'))
    .map((name) => join(folder, name)),
);
const strict = [
  '-std=gnu11',
  '-Wall',
  '-Wextra',
  '-Werror',
  '-Wshadow',
  '-Wconversion',
  '-fstack-protector-strong',
  '-pthread',
  '-I',
  join(here, 'src'),
  '-I',
  observe,
  '-I',
  build,
];
const release = ['-O2', '-D_FORTIFY_SOURCE=2', '-fPIE', '-static-pie', '-Wl,-z,now,-z,relro,-z,noexecstack', '-s'];
const sanitized = ['-O1', '-g', '-fsanitize=address,undefined', '-fno-sanitize-recover=all', '-fno-omit-frame-pointer'];

export function findCompiler() {
  return [process.env.CC, 'cc', 'gcc', 'clang'].find(
    (cc) => cc && spawnSync(cc, ['--version'], { stdio: 'ignore' }).status === 0,
  );
}

/** Compiles to a temporary name and renames: a launcher that is running is not written to. */
function compile(cc, flags, files, name) {
  const out = join(build, name);
  const result = spawnSync(cc, [...strict, ...flags, ...files, '-o', `${out}.${process.pid}`], { encoding: 'utf8' });
  if (result.status !== 0) return { name, said: result.stderr };
  chmodSync(`${out}.${process.pid}`, 0o755);
  renameSync(`${out}.${process.pid}`, out);
  return undefined;
}

/** Fuzzers of what is read, and programs that are run inside by the tests of libs/confine. */
function compileForTests(cc) {
  const tests = join(here, '../observe/test');
  return (
    compile(cc, sanitized, [join(here, 'src/plan.c'), join(here, 'test/fuzz.c')], 'fuzz') ??
    compile(cc, sanitized, [join(here, 'src/exec-frames.c'), join(here, 'test/exec-fuzz.c')], 'exec-fuzz') ??
    compile(
      cc,
      sanitized,
      ['frames.c', 'split.c', '../test/observe-fuzz.c'].map((name) => join(observe, name)),
      'observe-fuzz',
    ) ??
    ['same', 'race', 'many', 'cost']
      .map((name) => compile(cc, ['-O2'], [join(tests, `${name}.c`)], name))
      .find((failure) => failure)
  );
}

export function buildLauncher({ sanitize = false } = {}) {
  if (process.platform !== 'linux') return { skipped: `the launcher is for Linux, not for ${process.platform}` };
  const cc = findCompiler();
  if (!cc)
    return {
      skipped: 'no C compiler (cc, gcc or clang) was found: `nd7 run` will not work. Install one and build again',
    };
  mkdirSync(build, { recursive: true });
  // The launcher refuses a folder that others can write to, whatever the umask of the checkout was.
  chmodSync(build, 0o755);
  writeFoldTable(build);
  const failure =
    compile(cc, release, sources, 'nd7-launch') ??
    (sanitize ? (compile(cc, sanitized, sources, 'nd7-launch-sanitized') ?? compileForTests(cc)) : undefined);
  if (failure) throw new Error(`${failure.name} does not compile:\n${failure.said}`);
  return { launcher: join(build, 'nd7-launch') };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { launcher, skipped } = buildLauncher({ sanitize: process.argv.includes('--sanitize') });
  console.log(launcher ?? skipped);
}
