// Builds the launcher: `node native/launch/build.mjs` → native/launch/build/nd7-launch, and with --sanitize builds for the tests beside it.
// Where there is no C compiler it says so and ends well: `nd7 run` then says what is missing.
import { readdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { join } from 'node:path';
import { compilerInto, findCompiler, RELEASE, SANITIZED } from '../compile.mjs';
import { writeFoldTable } from '../observe/fold-table.mjs';

const here = fileURLToPath(new URL('.', import.meta.url));
const place = join(here, 'build');
const observe = join(here, '../observe/src');
// The supervisor is a process of the launcher, and so a part of its program.
const sources = [join(here, 'src'), observe].flatMap((folder) =>
  readdirSync(folder)
    .filter((name) => name.endsWith('.c'))
    .map((name) => join(folder, name)),
);
const flags = ['-pthread', '-I', join(here, 'src'), '-I', observe, '-I', place];

/** Fuzzers of what is read, and programs that are run inside by the tests of libs/confine. */
function compileForTests(compile) {
  const tests = join(here, '../observe/test');
  const frames = ['frames.c', 'split.c'].map((name) => join(observe, name));
  compile(SANITIZED, sources, 'nd7-launch-sanitized');
  compile(SANITIZED, [join(here, 'src/plan.c'), join(here, 'test/fuzz.c')], 'fuzz');
  compile(SANITIZED, [join(here, 'src/exec-frames.c'), join(here, 'test/exec-fuzz.c')], 'exec-fuzz');
  compile(SANITIZED, [...frames, join(tests, 'observe-fuzz.c')], 'observe-fuzz');
  for (const name of ['same', 'race', 'many', 'cost']) compile(['-O2'], [join(tests, `${name}.c`)], name);
}

export function build({ sanitize = false } = {}) {
  if (process.platform !== 'linux') return { skipped: `the launcher is for Linux, not for ${process.platform}` };
  const cc = findCompiler();
  if (!cc)
    return {
      skipped: 'no C compiler (cc, gcc or clang) was found: `nd7 run` will not work. Install one and build again',
    };
  const compile = compilerInto(place, cc, flags);
  writeFoldTable(place);
  const path = compile(RELEASE, sources, 'nd7-launch');
  if (sanitize) compileForTests(compile);
  return { path };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { path, skipped } = build({ sanitize: process.argv.includes('--sanitize') });
  console.log(path ?? skipped);
}
