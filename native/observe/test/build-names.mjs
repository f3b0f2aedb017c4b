// Builds the programs by which names are tested: `names-oracle`, the same with the sanitizers, and `names-fuzz`. Gives their folder; throws where they do not compile.
import { spawnSync } from 'node:child_process';
import { readdirSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import { findCompiler } from '../../compile.mjs';
import { writeFoldTable } from '../fold-table.mjs';

const here = import.meta.dirname;
const sources = join(here, '../src');
const build = join(here, '../build');
const strict = ['-std=gnu11', '-Wall', '-Wextra', '-Werror', '-Wshadow', '-Wconversion'];
const sanitized = ['-O1', '-g', '-fsanitize=address,undefined', '-fno-sanitize-recover=all', '-fno-omit-frame-pointer'];

export function buildNames() {
  const cc = findCompiler();
  if (cc === undefined) throw new Error('no C compiler (cc, gcc or clang) was found');
  writeFoldTable(build);
  const names = readdirSync(sources).filter((name) => /^names.*\.c$/.test(name));
  for (const [program, main, flags] of [
    ['names-oracle', 'names-oracle.c', ['-O2']],
    ['names-oracle-sanitized', 'names-oracle.c', sanitized],
    ['names-fuzz', 'names-fuzz.c', sanitized],
  ]) {
    const out = join(build, `${program}.${process.pid}`);
    const files = [...names.map((name) => join(sources, name)), join(here, main)];
    const made = spawnSync(cc, [...strict, ...flags, '-I', sources, '-I', build, ...files, '-o', out], {
      encoding: 'utf8',
    });
    if (made.status !== 0) throw new Error(`${program} does not compile:\n${made.stderr}`);
    renameSync(out, join(build, program));
  }
  return build;
}
