// Builds the probes: `node native/probes/build.mjs` → native/probes/build/nd7-probes.
// Where there is no C compiler it says so and ends well: `nd7 selftest` then counts their rows as skipped, by name.
import { fileURLToPath } from 'node:url';
import { join } from 'node:path';
import { compilerInto, findCompiler, RELEASE } from '../compile.mjs';

const here = fileURLToPath(new URL('.', import.meta.url));

export function build() {
  if (process.platform !== 'linux') return { skipped: `the probes are for Linux, not for ${process.platform}` };
  const cc = findCompiler();
  if (!cc) return { skipped: 'no C compiler (cc, gcc or clang) was found. Install one and build again' };
  return { path: compilerInto(join(here, 'build'), cc)(RELEASE, [join(here, 'src/probes.c')], 'nd7-probes') };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { path, skipped } = build();
  console.log(path ?? skipped);
}
