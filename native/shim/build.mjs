// Builds the hook shim: `node native/shim/build.mjs` → native/shim/build/nd7-shim, and with --sanitize a build for the tests beside it.
// Where there is no C compiler it says so and ends well: hooks then run as Node processes.
import { spawnSync } from 'node:child_process';
import { chmodSync, mkdirSync, readdirSync, renameSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { join } from 'node:path';

const here = fileURLToPath(new URL('.', import.meta.url));
const build = join(here, 'build');
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
  // What the stub and the broker say to each other.
  '-I',
  join(here, '../launch/src'),
];
const release = ['-O2', '-D_FORTIFY_SOURCE=2', '-fPIE', '-static-pie', '-Wl,-z,now,-z,relro,-z,noexecstack', '-s'];
const sanitized = ['-O1', '-g', '-fsanitize=address,undefined', '-fno-sanitize-recover=all', '-fno-omit-frame-pointer'];

export function findCompiler() {
  return [process.env.CC, 'cc', 'gcc', 'clang'].find(
    (cc) => cc && spawnSync(cc, ['--version'], { stdio: 'ignore' }).status === 0,
  );
}

/** Compiles to a temporary name and renames: a shim that is running is not written to. */
function compile(cc, flags, files, name) {
  const out = join(build, name);
  const result = spawnSync(cc, [...strict, ...flags, ...files, '-o', `${out}.${process.pid}`], { encoding: 'utf8' });
  if (result.status !== 0) return { name, said: result.stderr };
  chmodSync(`${out}.${process.pid}`, 0o755);
  renameSync(`${out}.${process.pid}`, out);
  return undefined;
}

export function buildShim({ sanitize = false } = {}) {
  if (process.platform !== 'linux')
    return { skipped: `the shim is for Linux; on ${process.platform} hooks run as Node processes` };
  const cc = findCompiler();
  if (!cc)
    return {
      skipped:
        'no C compiler (cc, gcc or clang) was found: hooks will run as Node processes, 30 to 80 ms each. Install one and build again',
    };
  mkdirSync(build, { recursive: true });
  // The shim refuses a folder that others can write to, whatever the umask of the checkout was.
  chmodSync(build, 0o755);
  const fuzz = [
    join(here, 'src', 'json.c'),
    join(here, 'src', 'recorder.c'),
    join(here, 'src', 'io.c'),
    join(here, 'test', 'fuzz.c'),
  ];
  const failure =
    compile(cc, release, sources, 'nd7-shim') ??
    (sanitize
      ? (compile(cc, sanitized, sources, 'nd7-shim-sanitized') ??
        compile(cc, [...sanitized, '-I', join(here, 'src')], fuzz, 'fuzz'))
      : undefined);
  if (failure) throw new Error(`${failure.name} does not compile:\n${failure.said}`);
  return { shim: join(build, 'nd7-shim') };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { shim, skipped } = buildShim({ sanitize: process.argv.includes('--sanitize') });
  console.log(shim ?? skipped);
}
