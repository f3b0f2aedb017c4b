// How the programs under native/ are compiled: any warning is an error, a release is hardened, and tests have a build that looks at every access.
import { spawnSync } from 'node:child_process';
import { chmodSync, mkdirSync, renameSync } from 'node:fs';
import { join } from 'node:path';

const STRICT = ['-std=gnu11', '-Wall', '-Wextra', '-Werror', '-Wshadow', '-Wconversion', '-fstack-protector-strong'];

/** What users run: static, so that nothing of the session's can be loaded into it. */
export const RELEASE = [
  '-O2',
  '-D_FORTIFY_SOURCE=2',
  '-fPIE',
  '-static-pie',
  '-Wl,-z,now,-z,relro,-z,noexecstack',
  '-s',
];

export const SANITIZED = [
  '-O1',
  '-g',
  '-fsanitize=address,undefined',
  '-fno-sanitize-recover=all',
  '-fno-omit-frame-pointer',
];

/** The command of a C compiler; undefined where there is none. */
export function findCompiler() {
  return [process.env.CC, 'cc', 'gcc', 'clang'].find(
    (cc) => cc && spawnSync(cc, ['--version'], { stdio: 'ignore' }).status === 0,
  );
}

/**
 * A compiler whose programs lie in the folder `build`, which is made. The programs refuse a folder that others can write to, whatever the umask of the checkout was.
 * `flags` hold for all that it compiles. Throws what the compiler said.
 */
export function compilerInto(build, cc, flags = []) {
  mkdirSync(build, { recursive: true });
  chmodSync(build, 0o755);
  return function compile(kind, files, name) {
    const out = join(build, name);
    // Renamed when it is whole: a program that is running is not written to.
    const own = `${out}.${process.pid}`;
    const { status, stderr } = spawnSync(cc, [...STRICT, ...flags, ...kind, ...files, '-o', own], { encoding: 'utf8' });
    if (status !== 0) throw new Error(`${name} does not compile:\n${stderr}`);
    chmodSync(own, 0o755);
    renameSync(own, out);
    return out;
  };
}
