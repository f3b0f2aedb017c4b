// The session of macOS from its start to its end, on Linux: in Seatbelt's place stands a library of the same functions, which holds the process by Landlock
// (or not at all), and writes down the profile. What the profile means is libs/confine's test; what macOS makes of it nobody has seen.
import { spawnSync } from 'node:child_process';
import { closeSync, existsSync, mkdirSync, openSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { compile, readPolicy, type Ruleset } from '@nd7/policy';
import { inputFor } from './ruleset.js';
import { runSeatbelt } from './run-seatbelt.js';
import type { Boundary } from './boundary.js';
import type { RunRequest } from './session-request.js';
import { removeThrowAways, throwAway } from '../testing/recorder.fixture.js';

const STAND_IN = `
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/landlock.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
static void allow(int ruleset, const char *path, uint64_t access) {
  struct landlock_path_beneath_attr a = {.allowed_access = access, .parent_fd = open(path, O_PATH | O_CLOEXEC)};
  if (a.parent_fd >= 0) syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &a, 0);
}
int sandbox_init_with_parameters(const char *profile, uint64_t flags, const char *const parameters[], char **error) {
  FILE *f = fopen(LOG, "w");
  fprintf(f, "%llu\\n%s\\n", (unsigned long long)flags, profile);
  for (size_t i = 0; parameters[i] != NULL; i += 2) fprintf(f, "%s=%s\\n", parameters[i], parameters[i + 1]);
  fclose(f);
  if (REFUSES) {
    *error = strdup("no such operation");
    return -1;
  }
  if (!HOLDS) return 0;
  /* The newest fields are written as bytes: headers may be older than the kernel. */
  const uint64_t files = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_MAKE_REG;
  uint64_t attributes[3] = {files, 1 << 1, 1 << 1};
  const int ruleset = (int)syscall(SYS_landlock_create_ruleset, attributes, sizeof attributes, 0);
  if (ruleset < 0) return -1;
  const char *const system[] = {"/usr", "/bin", "/lib", "/lib64", "/etc", "/proc"};
  for (size_t i = 0; i < 6; i++) allow(ruleset, system[i], LANDLOCK_ACCESS_FS_READ_FILE);
  allow(ruleset, "/dev", LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE);
  allow(ruleset, PROJECT, files);
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  return (int)syscall(SYS_landlock_restrict_self, ruleset, 0);
}
void sandbox_free_error(char *error) { (void)error; }
`;

let user: string;
let project: string;
let nd7Home: string;
beforeEach(() => {
  user = join(throwAway(), 'a user ünï');
  [project, nd7Home] = [join(user, 'project'), join(user, '.nd7')];
  mkdirSync(project, { recursive: true });
  mkdirSync(nd7Home, { mode: 0o700 });
});
afterEach(removeThrowAways);

function library(does: 'holds' | 'does not hold' | 'refuses'): string {
  const [source, built] = [join(user, 'stand-in.c'), join(user, 'stand-in.so')];
  writeFileSync(source, STAND_IN);
  const text = (name: string, value: string): string => `-D${name}="${value}"`;
  const flags = [
    text('LOG', join(user, 'log')),
    text('PROJECT', project),
    `-DHOLDS=${Number(does === 'holds')}`,
    `-DREFUSES=${Number(does === 'refuses')}`,
  ];
  const made = spawnSync('cc', ['-shared', '-fPIC', ...flags, '-o', built, source], { encoding: 'utf8' });
  expect([made.stderr, made.status]).toEqual(['', 0]);
  return built;
}

/** Without what Seatbelt does not give. */
function ruleset(document: object = {}): Ruleset {
  const environment = { PATH: '/usr/bin:/bin', HOME: user };
  const policies = inputFor({ profile: null, agent: undefined, home: user, project, nd7Home, environment });
  const policy = readPolicy(JSON.stringify({ nd7: 1, ...document }), 'p', 'user');
  const { ruleset: said } = compile({ ...policies, user: policy });
  const lacks = ['files.leaves', 'terminal.input', 'privilege.none'];
  return { ...said, required: said.required.filter(({ property }) => !lacks.includes(property)) };
}

async function run(script: string, does: Parameters<typeof library>[0], more: Partial<RunRequest> = {}) {
  const out = openSync(join(user, 'out'), 'w');
  const boundaries: Boundary[] = [];
  try {
    const ended = await runSeatbelt(
      {
        ruleset: ruleset(),
        argv: ['sh', '-c', script],
        attachment: undefined,
        nd7Home,
        environment: { PATH: '/usr/bin:/bin', HOME: user, AWS_SECRET_ACCESS_KEY: 'x' },
        cwd: project,
        stdio: [openSync('/dev/null', 'r'), out, out],
        warn: () => undefined,
        decided: () => undefined,
        started: (boundary) => void boundaries.push(boundary),
        ...more,
      } as RunRequest,
      library(does),
    );
    return { ended, boundaries, said: readFileSync(join(user, 'out'), 'utf8') };
  } finally {
    closeSync(out);
  }
}

const chain = (): { kind: string; data: Record<string, unknown> }[] =>
  readdirSync(join(nd7Home, 'sessions')).flatMap((name) =>
    readFileSync(join(nd7Home, 'sessions', name, 'log.jsonl'), 'utf8')
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as { kind: string; data: Record<string, unknown> }),
  );

describe('a session by Seatbelt', () => {
  it('confines a process, tries it, records what holds, and becomes the program', async () => {
    const { ended, boundaries, said } = await run(
      'echo "$0"; echo x > made; cat ../.nd7/.canary-*; env | grep -c SECRET; echo $HTTPS_PROXY; exit 7',
      'holds',
    );
    expect(ended).toMatchObject({ code: 7, signal: null });
    expect(said).toMatch(/^sh\ncat: .*Permission denied\n0\nhttp:\/\/nd7:[0-9a-f]{48}@127\.0\.0\.1:\d+\n$/);
    expect(existsSync(join(project, 'made'))).toBe(true);
    expect(boundaries).toMatchObject([{ tier: 'seatbelt', landlock: 0 }]);
    const shown = boundaries[0]?.rows.flatMap(({ proofs }) => proofs).map(({ name, verdict }) => `${name} ${verdict}`);
    expect([...new Set(shown)].sort()).toEqual(['read-hidden held', 'signal held', 'tcp held', 'write-outside held']);
    const log = readFileSync(join(user, 'log'), 'utf8');
    expect(log).toMatch(/^0\n\(version 1\)\n\(deny default\)\n/);
    expect(log).toContain(`=${project}\n`);
    expect(log).toMatch(new RegExp(`remote tcp "localhost:${/:(\d+)\n$/.exec(said)?.[1] ?? ''}"`));
    expect(chain().map(({ kind }) => kind)).toEqual(
      expect.arrayContaining(['session.start', 'enforcement', 'session.end']),
    );
    expect(chain().find(({ kind }) => kind === 'enforcement')?.data).toMatchObject({ tier: 'seatbelt' });
    // Nothing of the start is left behind.
    expect(readdirSync(nd7Home).filter((name) => name.startsWith('.canary'))).toEqual([]);
  });

  it('starts nothing where the profile does not hold, or is refused', async () => {
    await expect(run('echo ran > ran', 'does not hold')).rejects.toThrow(
      'the profile does not hold here: read-hidden, write-outside, tcp, signal',
    );
    await expect(run('echo ran > ran', 'refuses')).rejects.toThrow(
      'Seatbelt was not applied: the profile was refused: no such operation',
    );
    expect(existsSync(join(project, 'ran'))).toBe(false);
    expect(readdirSync(user).filter((name) => name.startsWith('.nd7~'))).toEqual([]);
  });

  it('refuses what it does not give before anything runs, and says which', async () => {
    const environment = { PATH: '/usr/bin:/bin', HOME: user };
    const { ruleset: strict } = compileDefault(environment);
    await expect(run('echo ran > ran', 'holds', { ruleset: strict })).rejects.toThrow(
      'what Seatbelt does not give here: files.leaves',
    );
    await expect(
      run('echo ran > ran', 'holds', { cwd: user, ruleset: ruleset({ files: { read: { deny: ['~'] } } }) }),
    ).rejects.toThrow('the folder that you are in is hidden');
    expect((await run('true', 'holds', { argv: ['no-such-program'] })).ended.code).toBe(127);
    expect(existsSync(join(project, 'ran'))).toBe(false);
  });
});

function compileDefault(environment: NodeJS.ProcessEnv) {
  return compile(inputFor({ profile: null, agent: undefined, home: user, project, nd7Home, environment }));
}
