// What a person types and watches, as a process: `npm start`, `npm run tour`, `nd7 ship --follow`.
import { spawn, type ChildProcess } from 'node:child_process';
import { join } from 'node:path';

export const ROOT = join(import.meta.dirname, '..', '..');

export interface Run {
  code: number;
  output: string;
}

/** A Node program that is going on. */
export class Program {
  /** All that it said, and what of it stands on standard output. */
  output = '';
  stdout = '';
  readonly ended: Promise<Run>;
  private readonly child: ChildProcess;
  private readonly waiting = new Set<() => void>();

  constructor(words: readonly string[], env: NodeJS.ProcessEnv) {
    this.child = spawn(process.execPath, words, { cwd: ROOT, env, stdio: ['ignore', 'pipe', 'pipe'] });
    const take = (chunk: Buffer): void => {
      this.output += chunk.toString('utf8');
      for (const look of this.waiting) look();
    };
    this.child.stdout?.on('data', (chunk: Buffer) => void (this.stdout += chunk.toString('utf8')));
    this.child.stdout?.on('data', take);
    this.child.stderr?.on('data', take);
    this.ended = new Promise((done) => {
      this.child.once('close', (code) => done({ code: code ?? 128, output: this.output }));
    });
  }

  /** What its output holds of the pattern, as soon as it does; throws when it ends without, or does not say it in time. */
  async says(pattern: RegExp, withinMs = 200_000): Promise<RegExpExecArray> {
    const found = new Promise<RegExpExecArray>((done) => {
      const look = (): void => {
        const match = pattern.exec(this.output);
        if (match === null) return;
        this.waiting.delete(look);
        done(match);
      };
      this.waiting.add(look);
      look();
    });
    let late: NodeJS.Timeout | undefined;
    const never = new Promise<never>((_, fail) => {
      const give = (why: string): void =>
        fail(new Error(`${why}, and it never said ${String(pattern)}:\n${this.output}`));
      late = setTimeout(() => give(`${String(withinMs)} ms are over`), withinMs);
      void this.ended.then(({ code }) => give(`it ended with ${String(code)}`));
    });
    try {
      return await Promise.race([found, never]);
    } finally {
      clearTimeout(late);
    }
  }

  /** Ctrl-C, or another signal. */
  interrupt(signal: NodeJS.Signals = 'SIGINT'): Promise<Run> {
    this.child.kill(signal);
    return this.ended;
  }
}

/** A task of infra/dev that is going on. */
export class Task extends Program {
  constructor(args: readonly string[], env: NodeJS.ProcessEnv) {
    super(['infra/dev/run.mjs', ...args], { ...process.env, NO_COLOR: '1', ...env });
  }
}

/** Runs a task to its end; `until` ends it with Ctrl-C once its output matches. */
export async function task(args: readonly string[], env: NodeJS.ProcessEnv, until?: RegExp): Promise<Run> {
  const run = new Task(args, env);
  if (until === undefined) return run.ended;
  return run.says(until).then(
    () => run.interrupt(),
    () => run.ended,
  );
}
