// The binding to Seatbelt, recorded by a library of the same functions: no macOS is here.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { KernelError } from './failure.js';
import { applySeatbelt, becomeProgram } from './seatbelt.js';

const FAKE = `
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static FILE *log_open(void) { return fopen(LOG, "a"); }
int sandbox_init_with_parameters(const char *profile, uint64_t flags, const char *const parameters[], char **error) {
  FILE *f = log_open();
  fprintf(f, "profile<%s> flags %llu error %s", profile, (unsigned long long)flags, error == NULL ? "NULL" : "there");
  size_t n = 0;
  for (; parameters[n] != NULL; n++) fprintf(f, " [%s]", parameters[n]);
  fprintf(f, " then NULL after %zu\\n", n);
  fclose(f);
  if (strstr(profile, "(refuse") == NULL) return 0;
  *error = strstr(profile, "(refuse-silently)") != NULL ? NULL : strdup("line 2: unbound variable: refuse \\xc3\\xa9");
  return -1;
}
void sandbox_free_error(char *error) {
  FILE *f = log_open();
  fprintf(f, "freed <%s>\\n", error);
  fclose(f);
  free(error);
}
`;

const compiler = ['cc', 'gcc', 'clang'].find((name) => spawnSync(name, ['--version']).status === 0);
let folder: string;
let library: string;
let log: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'nd7-seatbelt-'));
  [library, log] = [join(folder, 'fake.so'), join(folder, 'log')];
  writeFileSync(join(folder, 'fake.c'), FAKE);
  const built = spawnSync(
    compiler ?? 'cc',
    ['-shared', '-fPIC', '-Wall', '-Werror', `-DLOG="${log}"`, '-o', library, join(folder, 'fake.c')],
    { encoding: 'utf8' },
  );
  expect([built.stderr, built.status]).toEqual(['', 0]);
});
beforeEach(() => writeFileSync(log, ''));
afterAll(() => {
  rmSync(folder, { recursive: true, force: true });
});
const recorded = (): string => readFileSync(log, 'utf8');

describe('Seatbelt', () => {
  it('is given the profile as text, and the parameters in pairs with a NULL behind them', () => {
    applySeatbelt('(version 1)\n(deny default) ; é', { P0: '/Users/a "b" \\ ü\n', P1: '' }, library);
    expect(recorded()).toBe(
      'profile<(version 1)\n(deny default) ; é> flags 0 error there [P0] [/Users/a "b" \\ ü\n] [P1] [] then NULL after 4\n',
    );
    writeFileSync(log, '');
    applySeatbelt('(version 1)', {}, library);
    expect(recorded()).toBe('profile<(version 1)> flags 0 error there then NULL after 0\n');
  });

  it('says why a profile was refused, and gives the text back', () => {
    expect(() => applySeatbelt('(refuse)', {}, library)).toThrow(
      new KernelError('no-seatbelt', 'the profile was refused: line 2: unbound variable: refuse é'),
    );
    expect(recorded()).toMatch(/then NULL after 0\nfreed <line 2: unbound variable: refuse é>\n$/);
    expect(() => applySeatbelt('(refuse-silently)', {}, library)).toThrow('the profile was refused: it said nothing');
  });

  it('is not asked for what would end early, nor where it is not', () => {
    expect(() => applySeatbelt('a\0b', {}, library)).toThrow(KernelError);
    expect(() => applySeatbelt('a', { P0: 'b\0' }, library)).toThrow(KernelError);
    expect(recorded()).toBe('');
    expect(() => applySeatbelt('a', {}, join(folder, 'none.so'))).toThrow(KernelError);
  });
});

describe('becoming a program', () => {
  const module = join(import.meta.dirname, '../dist/seatbelt.js');
  const become = (...args: unknown[]) =>
    spawnSync(
      process.execPath,
      [
        '--input-type=module',
        '-e',
        `import { becomeProgram } from ${JSON.stringify(module)}; becomeProgram(...${JSON.stringify(args)})`,
      ],
      { encoding: 'utf8' },
    );

  it('leaves it its arguments, its variables and its signals', () => {
    const ran = become(
      '/bin/sh',
      ['sh', '-c', 'echo "$0" "$1"; env; (yes; echo "ended $?" >&2) | head -n 1', 'x y', 'ü'],
      ['A=b c', 'PATH=/usr/bin:/bin'],
    );
    expect(ran.stdout.split('\n')).toEqual(expect.arrayContaining(['x y ü', 'A=b c', 'PATH=/usr/bin:/bin', 'y']));
    // 128 and the number of SIGPIPE: it is not ignored.
    expect([ran.stderr, ran.status]).toEqual(['ended 141\n', 0]);
  });

  it('says why there is none', () => {
    expect(() => becomeProgram('/no/such/program', [], [])).toThrow(
      new KernelError('not-run', '/no/such/program: ENOENT'),
    );
    expect(() => becomeProgram('/bin/sh', ['a\0'], [])).toThrow(KernelError);
  });
});
