// What the two commands are told is read before anything is installed: a folder with nothing in it but what that takes.
import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { RUNGS } from '@nd7/postgres';

const ROOT = join(import.meta.dirname, '../../..');
const bare = mkdtempSync(join(tmpdir(), 'nd7-bare-'));
mkdirSync(join(bare, 'infra/dev'), { recursive: true });
for (const file of ['infra/dev/run.mjs', 'infra/dev/options.mjs', 'tools/bench']) {
  cpSync(join(ROOT, file), join(bare, file), { recursive: true });
}
afterAll(() => {
  rmSync(bare, { recursive: true, force: true });
});

function run(args: readonly string[], env: NodeJS.ProcessEnv = {}) {
  const { status, stdout, stderr } = spawnSync(process.execPath, [join(bare, 'infra/dev/run.mjs'), ...args], {
    encoding: 'utf8',
    env: { PATH: process.env['PATH'], ...env },
  });
  for (const made of ['node_modules', '.nd7-dev']) expect([made, existsSync(join(bare, made))]).toEqual([made, false]);
  return { code: status, stdout, stderr };
}

test.each([
  [['start', '--help'], `take this PostgreSQL: ${RUNGS.join(', ')}`],
  [['test', '-h'], '--skip-lint'],
  [['tour', '--help'], '--pause MS'],
  [['bench', '--help'], 'hook, ingest'],
])('npm %j prints its options and installs nothing', (args, text) => {
  expect(run(args)).toEqual({ code: 0, stdout: expect.stringContaining(text) as string, stderr: '' });
});

test.each<[string[], string]>([
  [[], 'usage: node infra/dev/run.mjs start|test|tour|bench'],
  [['stat'], 'usage: node infra/dev/run.mjs start|test|tour|bench'],
  [['start', '--frech'], "nd7: Unknown option '--frech'\nnpm start"],
  [['start', 'now'], "nd7: Unexpected argument 'now'"],
  [['start', '--port'], "nd7: Option '--port <value>' argument missing"],
  [['start', '--port', '70000'], 'nd7: --port and ND7_PORT take a number from 1 to 65435'],
  [['start', '--port', ''], 'nd7: --port and ND7_PORT take a number'],
  [['start', '--postgres', 'oracle'], `nd7: --postgres takes ${RUNGS.join(', ')}`],
  [['tour', '--pause', 'long'], 'nd7: --pause takes milliseconds'],
  [['tour', '--bad'], "nd7: Unknown option '--bad'"],
  [['test', '--bad'], "nd7: Unknown option '--bad'"],
  [['bench', 'nope'], 'nd7: no benchmark called nope; there are '],
  [['bench', '--mb', '5'], "nd7: Unknown option '--mb'"],
])('%j is not understood, which is said before anything is installed', (args, message) => {
  const { code, stdout, stderr } = run(args);
  expect([code, stdout]).toEqual([2, '']);
  expect(stderr).toContain(message);
  expect(stderr).not.toMatch(/^\s+at /m);
});

test('a port in the environment is looked at as one that is typed', () => {
  for (const task of ['start', 'tour'])
    expect(run([task], { ND7_PORT: 'x' })).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('ND7_PORT') as string,
    });
});
