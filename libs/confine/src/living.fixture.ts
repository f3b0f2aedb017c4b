// A session that goes on while it is widened and narrowed: a shell inside that is told one line after the other.
import { chownSync } from 'node:fs';
import { dirname } from 'node:path';
import type { Duplex } from 'node:stream';
import { GrantError } from './grant.js';
import type { Launched } from './launch.js';
import type { Plan } from './plan.js';
import { buildLaunchers, Machine, USERS } from './session.fixture.js';

export class Living {
  #said = '';
  #heard: () => void = () => undefined;
  #id = 0;

  private constructor(
    readonly session: Launched & { prepared: { clean(): void } },
    readonly input: Duplex,
  ) {
    for (const stream of [session.process.stdout, session.process.stderr])
      stream?.on('data', (bytes: Buffer) => {
        this.#said += bytes.toString();
        this.#heard();
      });
    void session.ended.then(() => this.#heard());
  }

  static async of(machine: Machine, change: Partial<Plan> = {}): Promise<Living> {
    const session = machine.start(['/bin/sh'], change, { stdio: ['pipe', 'pipe', 'pipe'] });
    if ((await session.started) === undefined) throw new Error(JSON.stringify(await session.ended));
    return new Living(session, session.process.stdin as Duplex);
  }

  /** Runs a script inside; what it says on both streams. */
  async say(script: string): Promise<string> {
    const mark = `--${++this.#id}--`;
    this.#said = '';
    this.input.write(`{ ${script}\n} 2>&1; echo ${mark}\n`);
    let hasEnded = false;
    void this.session.ended.then(() => (hasEnded = true));
    while (!this.#said.includes(mark)) {
      if (hasEnded) throw new Error(`the session has ended: ${this.#said}`);
      await new Promise<void>((done) => (this.#heard = done));
    }
    return this.#said.slice(0, this.#said.indexOf(mark)).trimEnd();
  }

  /** The errno by which a grant failed, 0 where it holds. */
  async widen(id: number, what: 'read' | 'write' | 'socket', path: string, below = false): Promise<number> {
    return errnoOf(this.session.widen({ id, what, path, below }));
  }

  async narrow(id: number): Promise<number> {
    return errnoOf(this.session.narrow(id));
  }

  async end(): Promise<number | null> {
    this.input.end();
    const { code } = await this.session.ended;
    this.session.prepared.clean();
    return code;
  }
}

function errnoOf(done: Promise<void>): Promise<number> {
  return done.then(
    () => 0,
    (error: unknown) => {
      if (error instanceof GrantError) return error.errno;
      throw error;
    },
  );
}

/** Waits until a condition holds that is asked for. */
export async function untilAsync(condition: () => Promise<boolean>): Promise<void> {
  const end = Date.now() + 20_000;
  while (!(await condition())) {
    if (Date.now() > end) throw new Error('it did not come to pass');
    await new Promise((done) => setTimeout(done, 20));
  }
}

/** What lies in the home of the tests of grants: hidden, seen, masked and protected. */
export function furnish(machine: Machine): void {
  machine.file('hidden/file', 'hidden\n');
  machine.file('hidden/deep/er/file', 'deep\n');
  machine.file('hidden/.env', 'SECRET\n');
  machine.file('alone', 'alone\n');
  machine.file('plain', 'plain\n');
  machine.file('seen/file', 'seen\n');
  machine.file('project/.env', 'SECRET\n');
  machine.file('project/.vscode/tasks.json', '{}\n');
  machine.hide('hidden');
  machine.hide('alone');
  machine.protect('.vscode');
  machine.protect('.envrc');
  machine.protect('hooks', { at: 'git-dir' });
  machine.mask('**/.env*', { under: [machine.project, machine.home], exceptTracked: false });
}

/** What a test of a living session stands on: a furnished machine, and the session that the test starts on it. */
export class Rig {
  machine!: Machine;
  living!: Living;

  constructor(
    readonly user: (typeof USERS)[number][1],
    readonly tier: 'T1' | 'T2',
  ) {}

  /** A file below the home that is made after the start. */
  late(name: string, content = 'late\n'): string {
    const path = this.machine.file(name, content);
    for (let at = path; at !== this.machine.home; at = dirname(at))
      if (this.user !== undefined) chownSync(at, this.user.uid, this.user.gid);
    return path;
  }
}

/** The same tests for each user and tier, each with a machine of its own; the session that a test has started ends with it. */
export function describeLiving(tests: (rig: Rig) => void): void {
  beforeAll(buildLaunchers, 120_000);
  for (const [who, user] of USERS)
    for (const tier of ['T1', 'T2'] as const)
      describe(`a living session of ${who} in tier ${tier}`, () => {
        const rig = new Rig(user, tier);
        beforeEach(() => {
          rig.machine = new Machine(user);
          rig.machine.tier = tier;
          // Without mounts what is read is asked about: in strict sessions everything is.
          rig.machine.patterns = tier === 'T1' ? 'names' : 'strict';
          furnish(rig.machine);
        });
        afterEach(async () => {
          await rig.living.end();
          rig.machine.close();
        });
        tests(rig);
      });
}
