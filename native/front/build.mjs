// Builds the front: `node native/front/build.mjs` → native/front/build/nd7, and with --sanitize a build for the tests beside it.
// Where there is no C compiler it says so and ends well: nd7 is then its JavaScript alone.
import { readdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { join } from 'node:path';
import { compilerInto, findCompiler, RELEASE, SANITIZED } from '../compile.mjs';

const here = fileURLToPath(new URL('.', import.meta.url));
const shim = join(here, '../shim/src');
const sources = [
  ...readdirSync(join(here, 'src'))
    .filter((name) => name.endsWith('.c'))
    .map((name) => join(here, 'src', name)),
  // How a program of nd7's finds its home and whether it is its user's alone is the shim's.
  ...['conf.c', 'io.c'].map((name) => join(shim, name)),
];
const flags = ['-I', join(here, 'src'), '-I', shim];

export function build({ sanitize = false } = {}) {
  if (process.platform !== 'linux') return { skipped: `the front is for Linux, not for ${process.platform}` };
  const cc = findCompiler();
  if (!cc) return { skipped: 'no C compiler (cc, gcc or clang) was found' };
  const compile = compilerInto(join(here, 'build'), cc, flags);
  const path = compile(RELEASE, sources, 'nd7');
  if (sanitize) {
    compile(SANITIZED, sources, 'nd7-sanitized');
    compile(SANITIZED, [join(here, 'src/frames.c'), join(shim, 'io.c'), join(here, 'test/fuzz.c')], 'fuzz');
  }
  return { path };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { path, skipped } = build({ sanitize: process.argv.includes('--sanitize') });
  console.log(path ?? skipped);
}
