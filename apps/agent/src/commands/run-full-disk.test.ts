// `nd7 run` where nd7's home lies on a disk without room: a real small file system, mounted where only this test sees it.
import { spawnSync } from 'node:child_process';
import {
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
} from 'node:fs';
import { join } from 'node:path';
import { BIN } from '../testing/recorder.fixture.js';

const isRoot = process.geteuid?.() === 0;
/** Of root's and of an ordinary user's; who is no root has a name space of users and is root there. */
const WHO = isRoot ? (['root', 'an ordinary user'] as const) : (['root'] as const);
const NOBODY = 65534;
const HAS_BWRAP = spawnSync('bwrap', ['--version']).status === 0;

let user: string;
let project: string;
beforeEach(() => {
  // None of the temporary folder's, which sessions of tier T3 may write.
  user = realpathSync(mkdtempSync('/var/tmp/nd7-full-'));
  project = join(user, 'project');
  mkdirSync(project);
  mkdirSync(join(user, '.nd7'), { mode: 0o700 });
});
afterEach(() => rmSync(user, { recursive: true, force: true }));

interface How {
  who?: (typeof WHO)[number];
  recording?: 'required' | 'best-effort';
  /** Of the file system; without files left nothing can be made, empty or not. */
  mount?: string;
  /** What is done beside it. */
  meanwhile?: string;
  /** What is done there afterwards. */
  after?: string;
}

function nd7(
  args: readonly string[],
  { who = 'root', recording = 'best-effort', mount = 'size=1m', meanwhile = ':', after = ':' }: How,
) {
  const id = who === 'root' ? 0 : NOBODY;
  if (id !== 0) for (const path of [user, project]) chownSync(path, id, id);
  const script = `
    mount -t tmpfs -o ${mount},mode=700,uid=${id},gid=${id} none "$HOME/.nd7" || exit 99
    echo '{"nd7":1,"recording":"${recording}"}' > "$HOME/.nd7/policy.jsonc"; chmod 600 "$HOME/.nd7/policy.jsonc"; chown ${id}:${id} "$HOME/.nd7/policy.jsonc"
    dd if=/dev/zero of="$HOME/.nd7/fill" bs=4k 2>/dev/null
    ( ${meanwhile} ) & 
    ${id === 0 ? '' : `setpriv --reuid ${id} --regid ${id} --clear-groups`} "$0" "$@"; code=$?
    ${after}
    exit $code`;
  const said = spawnSync('unshare', [isRoot ? '-m' : '-rm', 'sh', '-c', script, process.execPath, BIN, ...args], {
    cwd: project,
    encoding: 'utf8',
    env: { PATH: '/usr/local/bin:/usr/bin:/bin', HOME: user, BIN },
    timeout: 30_000,
    input: '',
  });
  return { status: said.status, stdout: said.stdout, stderr: said.stderr };
}

const FULL = (): string => `no space left on the disk of ${join(user, '.nd7')} (ENOSPC): make room there`;

describe.each(WHO)('nd7 run with a home on a full disk, as %s', (who) => {
  it.each([
    ['T1', 'size=1m'],
    ['T2', 'size=1m'],
    ['T3', 'size=1m'],
    // The policy, and what fills the disk: no other file can be made.
    ['T1', 'size=1m,nr_inodes=3'],
  ])('runs the program inside in tier %s (%s), and says that it is not recorded', (tier, mount) => {
    const script =
      'echo x > out; cat ../.nd7/policy.jsonc 2>/dev/null && echo read; touch ../outside 2>/dev/null; exit 7';
    const args = ['run', '--tier', tier, '--', 'sh', '-c', script];
    const { status, stdout, stderr } = nd7(args, { who, mount });
    expect([status, stdout, readdirSync(project), existsSync(join(user, 'outside'))]).toEqual([7, '', ['out'], false]);
    expect(stderr).toContain(`the session is not recorded: ${FULL()}`);
    expect(stderr).toContain(`hooks inside are not recorded: ${FULL()}`);
    expect(stderr).not.toMatch(/ENOSPC: no space|^nd7: ENOSPC/m);
  });

  it('starts nothing where recording is required, and says what is full and what to do', () => {
    for (const tier of ['T1', 'T2', 'T3']) {
      const { status, stderr } = nd7(['run', '--tier', tier, '--', 'touch', 'ran'], { who, recording: 'required' });
      expect([tier, status, readdirSync(project)]).toEqual([tier, 1, []]);
      expect(stderr).toMatch(/cannot be recorded, and the policy requires it: no space left on the disk of/);
      expect(stderr).toContain(FULL());
      expect(stderr).toMatch(/Mend that, or say "recording": "best-effort"/);
    }
  });

  (HAS_BWRAP ? it : it.skip)('starts no box, which would have no way out, and says what is full', () => {
    const { status, stderr } = nd7(['run', '--in', 'bwrap', '--', 'touch', 'ran'], { who });
    expect([status, readdirSync(project)]).toEqual([1, []]);
    expect(stderr).toContain(`the box can have no door, and no way out: ${FULL()}`);
  });

  it('records from when there is room again, with a gap before that and what holds', () => {
    const script =
      'touch up; while [ ! -e go ]; do sleep 0.05; done; sleep 1; touch .envrc 2>/dev/null; touch .envrc 2>/dev/null; exit 3';
    const meanwhile = 'cd "$HOME/project"; while [ ! -e up ]; do sleep 0.05; done; rm "$HOME/.nd7/fill"; touch go';
    const after = `node "$BIN" verify --all > "$HOME/verified" 2>&1; cat "$HOME"/.nd7/sessions/*/log.jsonl > "$HOME/log"`;
    const { status } = nd7(['run', '--', 'sh', '-c', script], { who, meanwhile, after });
    expect(status).toBe(3);
    const entries = readFileSync(join(user, 'log'), 'utf8')
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as { kind: string; data: Record<string, unknown> });
    expect(entries.map(({ kind }) => kind)).toEqual(
      expect.arrayContaining(['session.start', 'gap', 'enforcement', 'session.end', 'seal']),
    );
    const kinds = entries.map(({ kind }) => kind);
    expect(kinds.slice(0, 3)).toEqual(['session.start', 'gap', 'enforcement']);
    expect(entries[1]?.data).toMatchObject({ reason: 'ENOSPC', kinds: { enforcement: 1 } });
    expect(readFileSync(join(user, 'verified'), 'utf8')).toMatch(/verified|intact/i);
  });
});
