// A developer's machine: a home, the real recorder behind the real hook, and `nd7` as it is typed.
import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ROOT, until, type Backend } from './real-vault.fixture.js';
import { Program } from './task.fixture.js';

const BIN = join(ROOT, 'apps/agent/bin/nd7.js');

export interface Ran {
  code: number;
  stdout: string;
  stderr: string;
}

export interface Entry {
  seq: number;
  source: string;
  kind: string;
  time: string;
  data: Record<string, unknown>;
}

/** What a session of `nd7 ship --json` and of the recorder's status has. */
export interface Shipped {
  session: string;
  state: string;
  code?: string;
  problem?: string;
  continued_as?: string;
  entries: number;
  acknowledged: number;
}

export class Desk {
  readonly home = join(mkdtempSync(join(tmpdir(), 'nd7-desk-')), 'home');
  private calls = 0;

  /** `nd7` with words; `input` goes to its stdin. */
  nd7(args: readonly string[], input = ''): Promise<Ran> {
    return run(process.execPath, [BIN, ...args], this.env, input);
  }

  /** A line as it is typed into a shell in the checkout. */
  shell(line: string): Promise<Ran> {
    return run('sh', ['-c', line], this.env, '', ROOT);
  }

  /** `nd7` with words, and goes on. */
  watch(...args: string[]): Program {
    return new Program([BIN, ...args], this.env);
  }

  /** The object that a command prints with `--json`, whatever it ends with. */
  async json(...args: string[]): Promise<Record<string, unknown> & { exit: number }> {
    const { code, stdout, stderr } = await this.nd7([...args, '--json']);
    const lines = stdout.trim().split('\n');
    if (lines.length !== 1) throw new Error(`nd7 ${args.join(' ')} --json: not one line: ${stdout}${stderr}`);
    return { ...(JSON.parse(lines[0] ?? '') as Record<string, unknown>), exit: code };
  }

  /** A new machine with nd7 attached to a settings file of its own, and enrolled. */
  async enrol(backend: Backend, through: { url: string } = backend): Promise<void> {
    const init = await this.nd7(['init', '--settings', join(this.home, '..', 'settings.json'), '--yes']);
    if (init.code !== 0) throw new Error(init.stderr);
    const ran = await this.nd7(['enrol', through.url, await backend.enrolmentToken(), '--name', 'desk']);
    if (ran.code !== 0) throw new Error(ran.stderr);
  }

  /** Says a hook's payload as the agent does; returns when it is answered. */
  async say(session: string, event: string, more: object = {}): Promise<Ran> {
    const payload = JSON.stringify({ session_id: session, hook_event_name: event, ...more });
    const shim = join(this.home, 'bin', 'nd7-shim');
    const ran = existsSync(shim)
      ? await run(shim, ['--home', this.home, '--agent', 'claude-code'], this.env, payload)
      : await this.nd7(['hook', '--agent', 'claude-code'], payload);
    if (ran.code !== 0) throw new Error(`the hook: exit ${ran.code}: ${ran.stderr}`);
    return ran;
  }

  /** A prompt that is recorded without a recorder. */
  async sayAlone(session: string): Promise<void> {
    const payload = JSON.stringify({ session_id: session, hook_event_name: 'UserPromptSubmit', prompt: 'go on' });
    const ran = await this.nd7(['hook', '--agent', 'claude-code', '--alone'], payload);
    if (ran.code !== 0) throw new Error(`the hook: exit ${ran.code}: ${ran.stderr}`);
  }

  /** One tool call, before and after; returns its id. */
  async call(session: string): Promise<string> {
    const call = { tool_name: 'Bash', tool_input: { command: 'make' }, tool_use_id: `t${(this.calls += 1)}` };
    await this.say(session, 'PreToolUse', call);
    await this.say(session, 'PostToolUse', { ...call, tool_response: { stdout: 'made' } });
    return call.tool_use_id;
  }

  /** This machine's public key. */
  get machine(): string {
    return (JSON.parse(readFileSync(join(this.home, 'vault.json'), 'utf8')) as { machine: string }).machine;
  }

  sessions(): string[] {
    const folder = join(this.home, 'sessions');
    return existsSync(folder) ? readdirSync(folder).sort() : [];
  }

  entries(session: string): Entry[] {
    if (!this.sessions().includes(session)) return [];
    const lines = readFileSync(join(this.home, 'sessions', session, 'log.jsonl'), 'utf8')
      .split('\n')
      .slice(0, -1);
    return lines.map((line) => JSON.parse(line) as Entry);
  }

  /** Up to where a receipt is on the disk. */
  receipted(session: string): number {
    const folder = join(this.home, 'sessions', session, 'receipts');
    const names = existsSync(folder) ? readdirSync(folder) : [];
    return Math.max(0, ...names.map((name) => Number(/^([0-9]+)\.tlog-proof$/.exec(name)?.[1] ?? 0)));
  }

  async untilShipped(session: string): Promise<void> {
    await until(
      `all of ${session} has a receipt`,
      () => this.receipted(session) > 0 && this.receipted(session) === this.entries(session).length,
    );
  }

  /** What the running recorder says of shipping one session; undefined where it has not heard of it. */
  async shipping(session: string): Promise<Shipped | undefined> {
    const status = await this.json('status');
    const { ship } = (status['recorder'] ?? {}) as { ship?: { sessions: Shipped[] } | null };
    return ship?.sessions.find((one) => one.session === session);
  }

  async stopRecorder(): Promise<void> {
    await this.nd7(['recorder', '--stop']);
  }

  async remove(): Promise<void> {
    await this.stopRecorder();
    rmSync(join(this.home, '..'), { recursive: true, force: true, maxRetries: 20, retryDelay: 50 });
  }

  get env(): NodeJS.ProcessEnv {
    return {
      PATH: process.env['PATH'],
      HOME: join(this.home, '..'),
      ND7_HOME: this.home,
      NO_COLOR: '1',
      LANG: 'C.UTF-8',
    };
  }
}

function run(
  command: string,
  args: readonly string[],
  env: NodeJS.ProcessEnv,
  input: string,
  cwd?: string,
): Promise<Ran> {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { env, cwd, stdio: ['pipe', 'pipe', 'pipe'] });
    let [stdout, stderr] = ['', ''];
    child.stdout.on('data', (chunk: Buffer) => (stdout += chunk.toString()));
    child.stderr.on('data', (chunk: Buffer) => (stderr += chunk.toString()));
    child.stdin.on('error', () => undefined);
    child.stdin.end(input);
    child.once('error', reject);
    child.once('close', (code) => resolve({ code: code ?? 128, stdout, stderr }));
  });
}
