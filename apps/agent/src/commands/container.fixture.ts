// A person with a home and a project, whose programs run in containers of a test's engine.
import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { BIN } from '../testing/recorder.fixture.js';
import type { TestEngine } from '../testing/engines.fixture.js';

/** A script, more words of `nd7 run`, and variables of the person's. */
type Typed = [engine: TestEngine, script: string, more?: string[], environment?: Record<string, string>];

export class EngineDesk {
  readonly user = realpathSync(mkdtempSync('/var/tmp/nd7-box-'));
  readonly project = join(this.user, 'project');
  readonly #children: ChildProcess[] = [];

  constructor() {
    mkdirSync(this.project);
    mkdirSync(join(this.user, '.nd7'), { mode: 0o700 });
    mkdirSync(join(this.user, '.ssh'), { mode: 0o700 });
    writeFileSync(join(this.user, '.ssh/id'), 'SECRET');
  }

  /** A file of the project. */
  read(name: string): string {
    return readFileSync(join(this.project, name), 'utf8');
  }

  /** Every chain of this home. */
  log(): string {
    return readdirSync(join(this.user, '.nd7/sessions'))
      .map((session) => readFileSync(join(this.user, '.nd7/sessions', session, 'log.jsonl'), 'utf8'))
      .join('');
  }

  run(...typed: Typed) {
    const { program, args, options } = this.#commandOf(...typed);
    const { status, stdout, stderr } = spawnSync(program, args, { ...options, encoding: 'utf8', input: 'in\n' });
    return { status, stdout, stderr };
  }

  /** As `run`, while this process answers others. */
  async runBeside(...typed: Typed) {
    const { program, args, options } = this.#commandOf(...typed);
    const child = spawn(program, args, { ...options, stdio: ['ignore', 'ignore', 'pipe'] });
    this.#children.push(child);
    let stderr = '';
    child.stderr?.on('data', (bytes: Buffer) => (stderr += bytes.toString()));
    const [status] = (await once(child, 'close')) as [number | null];
    return { status, stderr };
  }

  /** Starts one, and waits until its program has said that it is there. */
  async start(...typed: Typed): Promise<ChildProcess> {
    const child = this.begin(...typed);
    await once(child.stdout as NodeJS.ReadableStream, 'data');
    return child;
  }

  /** At a terminal of its own, on which what is written is typed. */
  atTerminal(...typed: Typed): ChildProcess {
    const { program, args, options } = this.#commandOf(...typed);
    const words = [program, ...args].map((word) => `'${word.replaceAll("'", "'\\''")}'`);
    const env = { ...options.env, TERM: 'xterm', SHELL: '/bin/sh' };
    const child = spawn('script', ['-qefc', `exec ${words.join(' ')}`, '/dev/null'], { ...options, env });
    this.#children.push(child);
    return child;
  }

  begin(...typed: Typed): ChildProcess {
    const { program, args, options } = this.#commandOf(...typed);
    const child = spawn(program, args, { ...options, stdio: ['ignore', 'pipe', 'inherit'] });
    this.#children.push(child);
    return child;
  }

  /** `nd7` in another terminal, and among the mounts of a session where a test has made those: who is in others is taken for somebody inside. */
  nd7(beside: ChildProcess, ...words: string[]) {
    const uid = statSync(this.user).uid;
    const as = uid === 0 ? [] : ['setpriv', `--reuid=${uid}`, `--regid=${uid}`, '--clear-groups'];
    const own =
      process.geteuid?.() === 0 ? ['nsenter', `--mount=/proc/${beside.pid}/ns/mnt`, `--wd=${this.project}`, ...as] : [];
    const [program = '', ...args] = [...own, process.execPath, BIN, ...words];
    const { status, stdout, stderr } = spawnSync(program, args, {
      ...{ cwd: this.project, encoding: 'utf8', input: '' },
      env: { PATH: '/usr/bin:/bin', HOME: this.user },
    });
    return { status, stdout, stderr };
  }

  end(): void {
    for (const child of this.#children) child.kill('SIGKILL');
    spawnSync(process.execPath, [BIN, 'recorder', '--stop'], { env: { HOME: this.user } });
    rmSync(this.user, { recursive: true, force: true, maxRetries: 10, retryDelay: 50 });
  }

  #commandOf(engine: TestEngine, script: string, more: string[] = [], environment: Record<string, string> = {}) {
    const words = ['run', '--in', engine.kind, '--image', engine.image, ...more, '--', 'sh', '-c', script];
    const [program = '', ...args] = [...engine.before, process.execPath, BIN, ...words];
    const PATH = `${engine.path}:/usr/local/bin:/usr/bin:/bin`;
    const env = { ...engine.environment, PATH, HOME: this.user, ...environment };
    if (engine.uid !== undefined) spawnSync('chown', ['-R', `${engine.uid}:${engine.uid}`, this.user]);
    return { program, args, options: { cwd: this.project, env } };
  }
}
