// README, "Verify without trusting us": its commands, run as they are printed there on a session that nd7 recorded.
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { python } from '@nd7/testing';
import { recordedHome, removeFolders, said } from '../testing/cli.fixture.js';
import { REPOSITORY } from '../testing/recorder.fixture.js';

afterAll(removeFolders);

const readme = readFileSync(join(REPOSITORY, 'README.md'), 'utf8');
const hasB3sum = spawnSync('b3sum', ['--version']).status === 0;

/** The indented lines of the README that hold a text, with a home and a session put in their places. */
function commands(holding: string, home: string, session: string): string[] {
  return readme
    .split('\n')
    .filter((line) => line.startsWith('    ') && line.includes(holding))
    .map((line) => line.trim().replaceAll('~/.nd7', home).replaceAll('SESSION', session));
}

const shell = (command: string, cwd: string) => spawnSync('sh', ['-c', command], { cwd, encoding: 'utf8' });

(hasB3sum ? it : it.skip)('the links and the head, with b3sum', async () => {
  const home = await recordedHome('by-hand', [said('prompt', { prompt: 'grüße' }), said('turn.end', {})]);
  const folder = join(home, 'sessions/by-hand');
  const lines = readFileSync(join(folder, 'log.jsonl'), 'utf8').split('\n');
  const link = (line: number) => /^\{"v":1,"seq":\d+,"prev":"([0-9a-f]{64})"/.exec(lines[line - 1] ?? '')?.[1];
  const head = JSON.parse(readFileSync(join(folder, 'head.json'), 'utf8')) as { hash: string };
  const printed = commands('| b3sum', home, 'by-hand');
  expect(printed).toHaveLength(3);
  expect(printed.map((command) => shell(command, folder).stdout.slice(0, 64))).toEqual([link(1), link(2), head.hash]);
});

(python() !== '' ? it : it.skip)('the whole session, with the second implementation (python3)', async () => {
  const home = await recordedHome('by-hand', [said('prompt', { prompt: 'grüße' })]);
  const [verify = '', receipt = '', ...more] = commands('tests/reference/nd7ref.py', home, 'by-hand');
  expect(more).toEqual([]);
  const ran = shell(verify, REPOSITORY);
  expect([ran.status, ran.stderr]).toEqual([0, '']);
  expect(ran.stdout).toMatch(/^intact: 3 entries, head [0-9a-f]{64}\n$/);
  expect(receipt).toContain('--vkey');
});
