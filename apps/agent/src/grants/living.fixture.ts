// Real sessions of `nd7 run` in a throw-away home, and the commands of a person in another terminal.
import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { BIN, removeThrowAways, throwAway, until } from '../testing/recorder.fixture.js';

export interface Entry {
  source: string;
  kind: string;
  data: Record<string, unknown>;
  peer?: Record<string, unknown>;
}

/** A person with a home and a project. */
export class Desk {
  readonly user: string;
  readonly home: string;
  readonly project: string;
  readonly children: ChildProcess[] = [];
  /** Of the person's environment, over the rest. */
  variables: Record<string, string> = {};

  /** `isInTmp`: false for a home where paths are what they are inside too; the temporary folder is the session’s own. */
  constructor(private readonly isInTmp = true) {
    this.user = isInTmp ? throwAway() : mkdtempSync(join(homes(), 'nd7-grants-'));
    this.home = join(this.user, '.nd7');
    this.project = join(this.user, 'project');
    mkdirSync(this.project);
  }

  get environment(): Record<string, string> {
    return { PATH: '/usr/local/bin:/usr/bin:/bin', HOME: this.user, TERM: 'xterm', ...this.variables };
  }

  nd7(args: string[], cwd = this.project) {
    const { status, stdout, stderr } = spawnSync(process.execPath, [BIN, ...args], {
      cwd,
      encoding: 'utf8',
      env: this.environment,
      input: '',
    });
    return { status, stdout, stderr };
  }

  /** A command with `--json`, and what it printed. */
  json<T = Record<string, unknown>>(args: string[], cwd?: string): T {
    const { stdout, stderr } = this.nd7([...args, '--json'], cwd);
    if (stdout === '') throw new Error(stderr);
    return JSON.parse(stdout) as T;
  }

  policy(document: object): void {
    mkdirSync(this.home, { recursive: true, mode: 0o700 });
    writeFileSync(join(this.home, 'policy.jsonc'), JSON.stringify({ nd7: 1, ...document }), { mode: 0o600 });
  }

  /** Starts a session whose program answers lines: a JavaScript expression each, which may be a promise. */
  async session(options: string[] = [], project = this.project): Promise<Session> {
    writeFileSync(join(project, 'speak.cjs'), SPEAK);
    const child = spawn(process.execPath, [BIN, 'run', ...options, '--', process.execPath, 'speak.cjs'], {
      cwd: project,
      env: this.environment,
      stdio: ['pipe', 'pipe', 'pipe'],
    });
    this.children.push(child);
    const session = new Session(this, child);
    await session.do('1');
    return session;
  }

  runs(): string[] {
    const folder = join(this.home, 'sessions');
    return existsSync(folder) ? readdirSync(folder).filter((name) => name.startsWith('run-')) : [];
  }

  entries(session: string): Entry[] {
    return readFileSync(join(this.home, 'sessions', session, 'log.jsonl'), 'utf8')
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as Entry);
  }

  end(): void {
    for (const child of this.children.splice(0)) child.kill('SIGKILL');
    spawnSync(process.execPath, [BIN, 'recorder', '--stop'], { env: { HOME: this.user } });
    removeThrowAways();
    if (!this.isInTmp) rmSync(this.user, { recursive: true, force: true, maxRetries: 10, retryDelay: 20 });
  }
}

/** Where homes can lie: beside those of people for root, in one's own for others. */
function homes(): string {
  if (process.geteuid?.() === 0) return '/home';
  const folder = join(homedir(), '.cache');
  mkdirSync(folder, { recursive: true });
  return folder;
}

/** One living session. */
export class Session {
  said = '';
  #out = '';
  #sent = 0;

  constructor(
    private readonly desk: Desk,
    readonly child: ChildProcess,
  ) {
    child.stdout?.on('data', (bytes: Buffer) => (this.#out += bytes.toString()));
    child.stderr?.on('data', (bytes: Buffer) => (this.said += bytes.toString()));
  }

  /** What an expression is inside; of an error its code. */
  async do(expression: string): Promise<unknown> {
    const at = this.#sent++;
    this.child.stdin?.write(`${JSON.stringify(expression)}\n`);
    await until(`an answer to ${expression} (${this.said})`, () => this.#out.split('\n').length > at + 1);
    return JSON.parse(this.#out.split('\n')[at] ?? 'null');
  }

  async end(): Promise<string> {
    this.child.stdin?.end();
    if (this.child.exitCode === null) await once(this.child, 'close');
    return this.said;
  }

  /** The decisions about grants in its chain, in short. */
  decisions(run = this.desk.runs()[0] ?? ''): string[] {
    return this.desk
      .entries(run)
      .filter(({ source }) => source === 'decision:grant')
      .map(({ kind, data }) =>
        [kind, data['id'], data['host'] ?? data['path'], data['reason']].filter((part) => part !== undefined).join(' '),
      );
  }
}

const SPEAK = `
  const fs = require('fs'), http = require('http'), { spawnSync } = require('child_process');
  const proxy = () => new URL(process.env.HTTP_PROXY);
  const via = (method, path, host) => new Promise((done) => {
    const { hostname, port } = proxy();
    const request = http.request({ hostname, port, method, path, headers: { host } });
    request.on('connect', (answer, socket) => { globalThis.tunnel = socket; globalThis.cut = new Promise((over) => socket.on('error', () => {}).on('close', () => over('cut'))); done(answer.statusCode); });
    request.on('response', (answer) => { let text = ''; answer.on('data', (part) => (text += part)).on('end', () => done(answer.statusCode)); });
    request.on('error', (error) => done(error.code));
    request.end();
  });
  const get = (url) => via('GET', url, new URL(url).host);
  const run = (...argv) => { const { status, stdout, stderr } = spawnSync(argv[0], argv.slice(1), { encoding: 'utf8' }); return { status, stdout, stderr }; };
  let rest = '', turn = Promise.resolve();
  process.stdin.on('data', (bytes) => {
    const lines = (rest + bytes).split('\\n');
    rest = lines.pop();
    for (const line of lines) turn = turn.then(async () => {
      let value;
      try { value = await eval(JSON.parse(line)); } catch (error) { value = error.code ?? String(error); }
      process.stdout.write(JSON.stringify(value ?? null) + '\\n');
    });
  });
  process.stdin.on('end', () => process.exit(0));`;
