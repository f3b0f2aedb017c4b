// Builds the relay: `node native/relay/build.mjs` → native/relay/build/nd7-relay, and with --sanitize builds for the tests beside it.
// Where there is no C compiler it says so and ends well: the proxy then moves the bytes itself.
import { readdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { join } from 'node:path';
import { compilerInto, findCompiler, RELEASE, SANITIZED } from '../compile.mjs';

const here = fileURLToPath(new URL('.', import.meta.url));
const sources = readdirSync(join(here, 'src'))
  .filter((name) => name.endsWith('.c'))
  .map((name) => join(here, 'src', name));

export function build({ sanitize = false } = {}) {
  if (process.platform !== 'linux') return { skipped: `the relay is for Linux, not for ${process.platform}` };
  const cc = findCompiler();
  if (!cc) return { skipped: 'no C compiler (cc, gcc or clang) was found' };
  const compile = compilerInto(join(here, 'build'), cc, ['-I', join(here, 'src')]);
  const path = compile(RELEASE, sources, 'nd7-relay');
  if (sanitize) {
    compile(SANITIZED, sources, 'nd7-relay-sanitized');
    compile(SANITIZED, [join(here, 'src/frames.c'), join(here, 'src/hello.c'), join(here, 'test/fuzz.c')], 'fuzz');
  }
  return { path };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { path, skipped } = build({ sanitize: process.argv.includes('--sanitize') });
  console.log(path ?? skipped);
}
