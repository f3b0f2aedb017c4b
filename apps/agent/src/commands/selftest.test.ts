// `nd7 selftest` in the real boundary: what holds, what the manifest admits, a gap that is one, and that nothing of it stays behind.
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { BIN, REPOSITORY } from '../testing/recorder.fixture.js';

interface Result {
  session: string;
  counts: Record<string, number>;
  attacks: { name: string; property: string; verdict: string; why: string }[];
}

const isRoot = process.geteuid?.() === 0;

/** A user with a project. Not in a temporary folder where that can be: a session has its own of those, and less would be tried. */
class Person {
  readonly home = mkdtempSync(join(isRoot ? '/home' : tmpdir(), 'nd7-selftest-test-'));
  readonly project = join(this.home, 'project');

  readonly #seen = new Set<string>();

  constructor(private readonly uid: number | undefined) {
    mkdirSync(this.project);
    mkdirSync(join(this.home, '.nd7'), { mode: 0o700 });
    for (const path of [this.home, this.project, join(this.home, '.nd7')])
      if (uid !== undefined) chownSync(path, uid, uid);
  }

  get environment(): Record<string, string> {
    return { PATH: '/usr/local/bin:/usr/bin:/bin', HOME: this.home, TERM: 'xterm' };
  }

  get options() {
    const user = this.uid === undefined ? {} : { uid: this.uid, gid: this.uid };
    return { cwd: this.project, env: this.environment, ...user };
  }

  policy(document: object): void {
    const path = join(this.home, '.nd7/policy.jsonc');
    writeFileSync(path, JSON.stringify({ nd7: 1, ...document }));
    chmodSync(path, 0o600);
    if (this.uid !== undefined) chownSync(path, this.uid, this.uid);
  }

  nd7(...args: string[]) {
    const { status, signal, stdout, stderr } = spawnSync(process.execPath, [BIN, ...args], {
      ...this.options,
      encoding: 'utf8',
      input: '',
    });
    return { status, signal, stdout, stderr };
  }

  result(...args: string[]): Result & { status: number | null; stderr: string } {
    const { status, stdout, stderr } = this.nd7('selftest', '--json', ...args);
    try {
      return { status, stderr, ...(JSON.parse(stdout) as Result) };
    } catch {
      throw new Error(`${stdout}${stderr}`);
    }
  }

  /** What self-tests have left, wherever they put things; in the folders that all share, those whose ids were seen here. */
  leftovers(): string[] {
    const found = [this.home, this.project, join(this.home, '.nd7'), '/tmp', '/var/tmp', '/dev/shm']
      .flatMap((folder) => readdirSync(folder).map((name) => join(folder, name)))
      .filter((path) => /selftest-[0-9a-f]{16}$/.test(path));
    for (const path of found) if (path.startsWith(this.home)) this.#seen.add(path.slice(-16));
    return found.filter((path) => this.#seen.has(path.slice(-16)));
  }
}

/** Ids of processes that a self-test starts for its targets, of this person's home. */
function victims({ home }: Person): string[] {
  return readdirSync('/proc').filter((pid) => {
    try {
      return /^\d+$/.test(pid) && readFileSync(`/proc/${pid}/cmdline`, 'latin1').includes(`${home}/.nd7/selftest-`);
    } catch {
      return false;
    }
  });
}

async function until(what: () => boolean): Promise<void> {
  for (let i = 0; !what(); i++) {
    if (i > 1500) throw new Error('it did not come to that');
    await delay(20);
  }
}

const named = ({ attacks }: Result, verdict: string): string[] =>
  attacks.filter((one) => one.verdict === verdict).map(({ name }) => name);

/** What docs/report.md says of what is printed. */
const row = readFileSync(join(REPOSITORY, 'docs/report.md'), 'utf8')
  .split('\n')
  .find((line) => line.startsWith('| `nd7 selftest`'));

let person: Person;
afterEach(() => rmSync(person.home, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 }));

describe.each([['who runs the tests', undefined], ...(isRoot ? [['an ordinary user', 1000] as [string, number]] : [])])(
  'nd7 selftest as %s',
  (_who, uid) => {
    beforeEach(() => (person = new Person(uid)));

    it('holds but for what the manifest admits, records that, and leaves nothing', () => {
      const before = readdirSync(person.project);
      const result = person.result();
      expect(result.attacks.filter(({ verdict }) => verdict === 'not-held')).toEqual([]);
      expect([result.status, named(result, 'admitted'), named(result, 'skipped')]).toEqual([
        0,
        ['read-masked-late'],
        [],
      ]);
      // The twin can do all of this on any machine: were it not shown, the test would be.
      const held = named(result, 'held');
      for (const name of ['read-secret', 'write-new', 'unlink', 'read-masked', 'new-git-hook', 'git-hook-in-moved'])
        expect(held).toContain(name);
      for (const name of [
        'tcp-loopback',
        'proxy-to-loopback',
        'udp-loopback',
        'listen',
        'unix-abstract',
        'kill',
        'stay',
      ])
        expect(held).toContain(name);
      for (const name of ['read-environment', 'read-memory', 'write-tmp', 'read-shm', 'run-in-tmp'])
        expect(held).toContain(name);
      for (const name of ['unix-socket-late', 'widen-by-socket', 'widen-by-nd7', 'write-after-grant'])
        expect(held).toContain(name);
      expect(Object.values(result.counts).reduce((sum, count) => sum + count, 0)).toBe(result.attacks.length);
      expect(person.leftovers()).toEqual([]);
      expect(victims(person)).toEqual([]);
      expect(readdirSync(person.project)).toEqual(before);

      const entries = readFileSync(join(person.home, '.nd7/sessions', result.session, 'log.jsonl'), 'utf8')
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line) as { source: string; kind: string; data: Record<string, unknown> });
      expect(entries.find(({ kind }) => kind === 'selftest')).toMatchObject({
        source: 'recorder:nd7',
        data: { held: held.length, admitted: ['read-masked-late'], not_held: [], skipped: [] },
      });
      expect(person.nd7('verify', result.session).status).toBe(0);

      const members = [result, result.counts, ...result.attacks].flatMap((one) => Object.keys(one));
      const verdicts = result.attacks.map(({ verdict }) => verdict);
      for (const word of new Set([...members, ...verdicts].filter((one) => one !== 'status' && one !== 'stderr')))
        expect(row).toMatch(new RegExp(`\`${word}(\\[\\])?\``));
    });

    it('holds in tier T2 as well, without a namespace, but for what its manifest admits', () => {
      const result = person.result('--tier', 'T2');
      expect(result.attacks.filter(({ verdict }) => verdict === 'not-held')).toEqual([]);
      expect([result.status, named(result, 'admitted'), named(result, 'skipped')]).toEqual([
        0,
        ['read-masked', 'read-masked-late', 'listen'],
        [],
      ]);
      const held = named(result, 'held');
      for (const name of [
        'widen-by-socket',
        'widen-by-nd7',
        'read-secret',
        'chmod',
        'setxattr',
        'new-git-hook',
        'unix-socket-late',
        'write-after-grant',
        'kill',
        'ptrace',
        'stay',
      ])
        expect(held).toContain(name);
      expect(person.leftovers()).toEqual([]);
    });

    it('holds in tier T3 but for what its manifest admits', () => {
      const result = person.result('--tier', 'T3');
      expect(result.attacks.filter(({ verdict }) => verdict === 'not-held')).toEqual([]);
      // What it has planted itself is no news.
      expect(result.stderr).not.toMatch(/protected name|envrc/);
      // A session of T3 is granted no paths.
      expect([result.status, named(result, 'skipped')]).toEqual([0, ['write-after-grant']]);
      const admitted = named(result, 'admitted');
      for (const name of ['chmod', 'new-git-hook', 'new-envrc', 'tcp-loopback', 'listen', 'write-shm'])
        expect(admitted).toContain(name);
      const held = named(result, 'held');
      for (const name of [
        'read-secret',
        'write-new',
        'truncate',
        'setxattr',
        'unix-socket-late',
        'kill',
        'ptrace',
        'stay',
      ])
        expect(held).toContain(name);
      expect(person.leftovers()).toEqual([]);
    });

    it('says as nd7 run does, with exit 2, that a boundary as the rules want it cannot be made', () => {
      person.policy({ require: ['files.masks.host'] });
      expect(person.nd7('selftest')).toMatchObject({
        status: 2,
        stdout: '',
        stderr: expect.stringContaining('requires what tier T1 does not give here: files.masks.host') as string,
      });
      expect(person.leftovers()).toEqual([]);
    });

    it('finds what the rules let out, exits 1, and doctor tells of it until it is mended', () => {
      expect(person.nd7('doctor').stdout).toMatch(/note +selftest +.*never attacked here\n +→ nd7 selftest\n/);
      person.policy({ files: { write: { allow: ['~'] } }, network: { loopback: ['1024-65535'] } });
      const result = person.result();
      const gaps = named(result, 'not-held');
      expect([result.status, gaps]).toEqual([
        1,
        expect.arrayContaining(['write-new', 'write-existing', 'unlink', 'chmod', 'proxy-to-loopback']),
      ]);
      expect(gaps).not.toContain('read-secret');
      expect(result.attacks.find(({ name }) => name === 'write-new')?.why).toContain(`let ${person.home} be written`);
      const inProject = { ...person.options, cwd: person.project };
      expect(inProject.cwd).toBe(person.project);
      expect(person.nd7('doctor').stdout).toMatch(/BAD +selftest +attempts got out .* not, .*\n +→ nd7 selftest\n/);
      person.policy({});
      expect(person.nd7('doctor').stdout).toMatch(
        /note +selftest +.*not attacked with this kernel, policy and version/,
      );
      expect(person.nd7('selftest')).toMatchObject({
        status: 0,
        stdout: expect.stringMatching(/\n\d+ attempts: \d+ held, 1 admitted by the manifest, 0 NOT held/) as string,
      });
      expect(person.nd7('doctor').stdout).toMatch(
        /ok +selftest +the boundary of nd7 run was attacked: \d+ attempts held/,
      );
    });
  },
);

describe('nd7 selftest that is ended', () => {
  beforeEach(() => (person = new Person(undefined)));

  const started = async () => {
    const child = spawn(process.execPath, [BIN, 'selftest'], { ...person.options, stdio: 'ignore' });
    await until(() => victims(person).length > 0);
    return { child, ended: once(child, 'close') as Promise<[number | null, NodeJS.Signals | null]> };
  };

  it.each(['SIGINT', 'SIGTERM'] as const)('by %s: takes everything away, and ends by it', async (signal) => {
    const { child, ended } = await started();
    child.kill(signal);
    expect(await ended).toEqual([null, signal]);
    expect([person.leftovers(), victims(person)]).toEqual([[], []]);
    expect(existsSync(join(person.home, '.nd7/selftests.json'))).toBe(false);
  });

  it.each(['twin', 'session'])(
    'by SIGKILL, while the %s runs: its processes end, and the next run takes its folders away',
    async (when) => {
      const { child, ended } = await started();
      if (when === 'session')
        await until(
          () =>
            existsSync(join(person.home, '.nd7/sessions')) &&
            readdirSync(join(person.home, '.nd7/sessions')).length > 0,
        );
      child.kill('SIGKILL');
      await ended;
      expect(person.leftovers().length).toBeGreaterThan(2);
      await until(() => victims(person).length === 0);
      expect(person.nd7('selftest').status).toBe(0);
      expect(person.leftovers()).toEqual([]);
    },
  );

  it('leaves another one alone that still runs', async () => {
    const { ended } = await started();
    const [first] = person.leftovers();
    const [other, own] = await Promise.all([ended, Promise.resolve(person.nd7('selftest'))]);
    expect(first).toBeDefined();
    expect([other, own.status]).toEqual([[0, null], 0]);
    expect(person.leftovers()).toEqual([]);
  });
});
