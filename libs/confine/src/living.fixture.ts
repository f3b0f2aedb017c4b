// A session that goes on while it is widened and narrowed: a shell inside that is told one line after the other.
import type { Duplex } from 'node:stream';
import { GrantError } from './grant.js';
import type { Launched } from './launch.js';
import type { Plan } from './plan.js';
import type { Machine } from './session.fixture.js';

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
