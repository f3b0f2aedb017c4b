// Builds the hook shim: `node native/shim/build.mjs` → native/shim/build/nd7-shim, and with --sanitize a build for the tests beside it.
// Where there is no C compiler it says so and ends well: hooks then run as Node processes.
import { readdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { join } from 'node:path';
import { compilerInto, findCompiler, RELEASE, SANITIZED } from '../compile.mjs';

const here = fileURLToPath(new URL('.', import.meta.url));
const sources = readdirSync(join(here, 'src'))
  .filter((name) => name.endsWith('.c'))
  .map((name) => join(here, 'src', name));
// What the stub and the broker say to each other.
const flags = ['-I', join(here, '../launch/src')];

export function build({ sanitize = false } = {}) {
  if (process.platform !== 'linux')
    return { skipped: `the shim is for Linux; on ${process.platform} hooks run as Node processes` };
  const cc = findCompiler();
  if (!cc)
    return {
      skipped:
        'no C compiler (cc, gcc or clang) was found: hooks will run as Node processes, 30 to 80 ms each. Install one and build again',
    };
  const compile = compilerInto(join(here, 'build'), cc, flags);
  const path = compile(RELEASE, sources, 'nd7-shim');
  if (sanitize) {
    const fuzz = ['src/json.c', 'src/recorder.c', 'src/door.c', 'src/io.c', 'test/fuzz.c'].map((name) =>
      join(here, name),
    );
    compile(SANITIZED, sources, 'nd7-shim-sanitized');
    compile([...SANITIZED, '-I', join(here, 'src')], fuzz, 'fuzz');
  }
  return { path };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { path, skipped } = build({ sanitize: process.argv.includes('--sanitize') });
  console.log(path ?? skipped);
}
