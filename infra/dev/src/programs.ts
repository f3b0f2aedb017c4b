// Runs the two programs of the checkout, `nd7` and `nd7-vault`, as a user would: as processes.
import { spawn, type ChildProcess } from 'node:child_process';
import { createWriteStream, mkdirSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';

export interface Result {
  code: number;
  stdout: string;
  stderr: string;
}

/** Runs a program to its end. `input` goes to its stdin. */
export function runProgram(
  command: string,
  args: readonly string[],
  options: { env?: NodeJS.ProcessEnv; cwd?: string; input?: string | Uint8Array } = {},
): Promise<Result> {
  return new Promise((done, fail) => {
    const child = spawn(command, args, {
      cwd: options.cwd,
      env: options.env ?? process.env,
      stdio: ['pipe', 'pipe', 'pipe'],
    });
    const out: Buffer[] = [];
    const err: Buffer[] = [];
    child.stdout.on('data', (chunk: Buffer) => out.push(chunk));
    child.stderr.on('data', (chunk: Buffer) => err.push(chunk));
    child.once('error', fail);
    child.once('close', (code, signal) =>
      done({
        code: code ?? (signal === null ? 1 : 128),
        stdout: Buffer.concat(out).toString('utf8'),
        stderr: Buffer.concat(err).toString('utf8'),
      }),
    );
    child.stdin.on('error', () => undefined); // it may end without reading
    child.stdin.end(options.input ?? '');
  });
}

/** The programs of one checkout with the environment of one machine. */
export class Programs {
  constructor(
    readonly root: string,
    readonly env: NodeJS.ProcessEnv,
  ) {}

  nd7(args: readonly string[], input?: string | Uint8Array): Promise<Result> {
    return this.run(join(this.root, 'apps/agent/bin/nd7.js'), args, input);
  }

  vault(args: readonly string[]): Promise<Result> {
    return this.run(join(this.root, 'apps/vault/bin/nd7-vault.js'), args);
  }

  /** Runs with `--json`, expects success, and answers with the object printed. */
  async json(program: 'nd7' | 'vault', args: readonly string[]): Promise<Record<string, unknown>> {
    const result = await this[program]([...args, '--json']);
    const line = result.stdout.trim().split('\n').at(-1) ?? '';
    if (result.code !== 0) throw new Error(`${program} ${args.join(' ')}: ${problem(result)}`);
    return JSON.parse(line) as Record<string, unknown>;
  }

  private run(file: string, args: readonly string[], input?: string | Uint8Array): Promise<Result> {
    return runProgram(process.execPath, [file, ...args], { env: this.env, ...(input === undefined ? {} : { input }) });
  }
}

/** What a failed program said, in one line. */
export function problem(result: Result): string {
  const text = (result.stderr.trim() || result.stdout.trim()).split('\n').slice(-4).join(' · ');
  return `exit ${result.code}: ${text}`;
}

/** A service that runs beside us; its output goes to a file. */
export class Service {
  private readonly ended: Promise<void>;
  private hasEnded = false;

  private constructor(
    private readonly child: ChildProcess,
    readonly log: string,
  ) {
    this.ended = new Promise((done) =>
      child.once('close', () => {
        this.hasEnded = true;
        done();
      }),
    );
  }

  /** Executes a program by itself, so that its own first line says how; the Node that it finds is ours. */
  static start(file: string, args: readonly string[], env: NodeJS.ProcessEnv, logFile: string): Service {
    mkdirSync(join(logFile, '..'), { recursive: true });
    const log = createWriteStream(logFile, { flags: 'a', mode: 0o600 });
    // Of its own process group: a Ctrl-C at the terminal is for us, and we end our services in order.
    const child = spawn(file, args, {
      env: { ...env, PATH: [dirname(process.execPath), ...(env['PATH']?.split(delimiter) ?? [])].join(delimiter) },
      stdio: ['ignore', 'pipe', 'pipe'],
      detached: true,
    });
    child.once('error', (error) => log.write(`${error.message}\n`)); // it cannot be executed
    child.stdout.pipe(log, { end: false });
    child.stderr.pipe(log, { end: false });
    process.once('exit', () => child.kill('SIGTERM'));
    return new Service(child, logFile);
  }

  get running(): boolean {
    return !this.hasEnded;
  }

  /** SIGTERM, and SIGKILL when it does not end within ten seconds. */
  async stop(): Promise<void> {
    if (this.hasEnded) return;
    this.child.kill('SIGTERM');
    const late = setTimeout(() => this.child.kill('SIGKILL'), 10_000);
    await this.ended;
    clearTimeout(late);
  }
}
