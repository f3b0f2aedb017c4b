// Builds the probes: `node native/probes/build.mjs` → native/probes/build/nd7-probes.
// Where there is no C compiler it says so and ends well: `nd7 selftest` then counts their rows as skipped, by name.
import { spawnSync } from 'node:child_process';
import { chmodSync, mkdirSync, renameSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { join } from 'node:path';
import { findCompiler } from '../launch/build.mjs';

const here = fileURLToPath(new URL('.', import.meta.url));
const build = join(here, 'build');
// As the launcher is built.
const strict = ['-std=gnu11', '-Wall', '-Wextra', '-Werror', '-Wshadow', '-Wconversion', '-fstack-protector-strong'];
const release = ['-O2', '-D_FORTIFY_SOURCE=2', '-fPIE', '-static-pie', '-Wl,-z,now,-z,relro,-z,noexecstack', '-s'];

export function buildProbes() {
  if (process.platform !== 'linux') return { skipped: `the probes are for Linux, not for ${process.platform}` };
  const cc = findCompiler();
  if (!cc) return { skipped: 'no C compiler (cc, gcc or clang) was found. Install one and build again' };
  mkdirSync(build, { recursive: true });
  const out = join(build, 'nd7-probes');
  // Renamed when it is whole: one that is running is not written to.
  const own = `${out}.${process.pid}`;
  const result = spawnSync(cc, [...strict, ...release, join(here, 'src/probes.c'), '-o', own], { encoding: 'utf8' });
  if (result.status !== 0) throw new Error(`nd7-probes does not compile:\n${result.stderr}`);
  chmodSync(own, 0o755);
  renameSync(own, out);
  return { probes: out };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { probes, skipped } = buildProbes();
  console.log(probes ?? skipped);
}
