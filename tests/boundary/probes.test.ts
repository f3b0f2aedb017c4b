// 110 attempts to get out and 17 things that must go on working, run inside `nd7 run` on a machine of their own (tests/escape), as an ordinary user
// and as root. What gets through is compared with what is committed, and each of it stands in docs/limits.md.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const root = join(import.meta.dirname, '../..');
interface Expected {
  permitted: string[];
  /** What does not go on working, where the tier closes it. */
  broken?: string[];
  denied: number;
  works: number;
}
const expected = (tier: string): Expected =>
  JSON.parse(readFileSync(join(root, 'tests/escape', `${tier.toLowerCase()}.json`), 'utf8')) as Expected;

/** The names of the probes by what became of them. */
function probe(tier: string, uid: number): Record<string, string[]> {
  const scratch = mkdtempSync(join(tmpdir(), 'nd7-probes-'));
  try {
    const run = spawnSync(
      join(root, 'tests/escape/run-probes.sh'),
      ['-v', '-u', String(uid), 'nd7', '/opt/node', '/opt/nd7/apps/agent/bin/nd7.js', 'run', '--tier', tier, '--'],
      {
        encoding: 'utf8',
        env: { PATH: process.env['PATH'], NP: join(scratch, 'np'), NP_SHOW: root, NP_NODE: process.execPath },
      },
    );
    const found: Record<string, string[]> = {
      PERMITTED: [],
      DENIED: [],
      SKIP: [],
      WORKS: [],
      BROKEN: [],
      'EFFECT-SEEN': [],
    };
    for (const line of run.stdout.split('\n')) {
      const [verdict = '', name = ''] = line.split(' ');
      found[verdict]?.push(name);
    }
    // A machine that could not be built has no verdicts: its own words say why.
    if (found['DENIED']?.length === 0) throw new Error(`the probes did not run:\n${run.stdout}${run.stderr}`);
    return found;
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

// Building the machine takes root: skip by name for others.
(process.geteuid?.() === 0 ? describe : describe.skip).each([
  ['T1', 'an ordinary user', 1000],
  ['T1', 'root', 0],
  ['T2', 'an ordinary user', 1000],
  ['T2', 'root', 0],
  ['T3', 'an ordinary user', 1000],
  ['T3', 'root', 0],
])('the probes inside tier %s, as %s [root builds their machine]', (tier, _who, uid) => {
  it('get out as far as is committed, and break nothing but what is committed', () => {
    const found = probe(tier, uid);
    const { permitted, broken = [], denied, works } = expected(tier);
    expect([found['PERMITTED'], found['BROKEN'], found['EFFECT-SEEN'], found['SKIP']]).toEqual([
      permitted,
      broken,
      [],
      [],
    ]);
    expect([found['DENIED']?.length, found['WORKS']?.length]).toEqual([denied, works]);
  });
});

it.each(['T1', 'T2', 'T3'])('each probe that gets out of %s or breaks in it is explained in docs/limits.md', (tier) => {
  const limits = readFileSync(join(root, 'docs/limits.md'), 'utf8');
  const { permitted, broken = [] } = expected(tier);
  expect([...permitted, ...broken].filter((name) => !limits.includes(`\`${name}\``))).toEqual([]);
});
