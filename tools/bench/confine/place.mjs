// Where the bench works: a home, nd7's home and a project in a temporary folder, gone again at the end, also after Ctrl-C. Programs are
// started here and nowhere else, so that none outlives the bench.
import { spawn } from 'node:child_process';
import { accessSync, chmodSync, constants, mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { createInterface } from 'node:readline';

export const root = join(import.meta.dirname, '..', '..', '..');
export const nd7 = join(root, 'apps/agent/bin/nd7.js');

/** The file of a program on the PATH; undefined where there is none. */
export function find(name) {
  return (process.env.PATH ?? '')
    .split(delimiter)
    .map((folder) => join(folder, name))
    .find((path) => {
      try {
        accessSync(path, constants.X_OK);
        return true;
      } catch {
        return false;
      }
    });
}

export const median = (numbers) => numbers.toSorted((a, b) => a - b)[numbers.length >> 1];

export class Place {
  #running = new Set();
  isOver = false;

  constructor(folder = tmpdir()) {
    this.base = realpathSync(mkdtempSync(join(folder, 'nd7-bench-confine-')));
    chmodSync(this.base, 0o755);
    this.home = join(this.base, 'home');
    this.nd7Home = join(this.home, '.nd7');
    this.project = join(this.base, 'project');
    for (const folder of [this.home, this.project]) mkdirSync(folder);
    mkdirSync(this.nd7Home, { mode: 0o700 });
    // Node and npm may lie in a home that is not this one, and is hidden therefore.
    const programs = dirname(dirname(realpathSync(process.execPath)));
    const policy = { nd7: 1, ...(programs === '/' ? {} : { files: { read: { allow: [programs] } } }) };
    writeFileSync(join(this.nd7Home, 'policy.jsonc'), JSON.stringify(policy), { mode: 0o600 });
    this.environment = {
      PATH: `${dirname(process.execPath)}${delimiter}${process.env.PATH ?? '/usr/bin:/bin'}`,
      HOME: this.home,
      LANG: 'C.UTF-8',
      GIT_CONFIG_NOSYSTEM: '1',
    };
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'])
      process.once(signal, () => void this.close().then(() => process.exit(130)));
  }

  /** Ends what still runs and takes the folder away. */
  async close() {
    this.isOver = true;
    await Promise.all(
      [...this.#running].map((child) => new Promise((done) => (child.once('close', done), child.kill('SIGTERM')))),
    );
    rmSync(this.base, { recursive: true, force: true, maxRetries: 5 });
  }

  start(command, args, options = {}) {
    if (this.isOver) throw new Error('the bench was ended');
    const child = spawn(command, args, { cwd: this.project, env: this.environment, ...options });
    this.#running.add(child);
    child.once('close', () => this.#running.delete(child));
    return child;
  }

  /** Runs a program to its end and returns what it printed. */
  async run(command, args, options = {}) {
    const child = this.start(command, args, { stdio: ['ignore', 'pipe', 'pipe'], ...options });
    const said = { stdout: '', stderr: '' };
    for (const stream of ['stdout', 'stderr']) child[stream].on('data', (bytes) => (said[stream] += bytes));
    const status = await new Promise((done, failed) => child.once('error', failed).once('close', done));
    if (status !== 0) throw new Error(`${command} ${args.join(' ')} ended with ${status}: ${said.stderr}`);
    return said.stdout;
  }

  /** A program that answers one line of JSON to each line that it is sent. */
  converse(command, args, options = {}) {
    const child = this.start(command, args, { stdio: ['pipe', 'pipe', 'inherit'], ...options });
    const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
    const hear = async () => {
      const { value, done } = await lines.next();
      if (done) throw new Error(`${command} ${args.join(' ')} ended before it answered`);
      return JSON.parse(value);
    };
    return {
      pid: child.pid,
      hear,
      ask: (question) => (child.stdin.write(`${JSON.stringify(question)}\n`), hear()),
      end: () => new Promise((done) => (child.once('close', done), child.stdin.end())),
    };
  }
}
