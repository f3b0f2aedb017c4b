// A program in an agent's place: what it does with the shell that it is given is what Claude Code does.
import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const root = join(import.meta.dirname, '../..');
const BIN = join(root, 'apps/agent/bin/nd7.js');
const isRoot = process.geteuid?.() === 0;
/** This user, and an ordinary one where this is root. */
export const USERS: [string, { uid?: number; gid?: number }][] = [
  ...(isRoot ? [['root', {}] as [string, object]] : []),
  ['an ordinary user', isRoot ? { uid: 1000, gid: 1000 } : {}],
];

export type Tier = 'T1' | 'T2';
type User = (typeof USERS)[number];
/** Each of them in each tier. */
export const WHO: [Tier, ...User][] = USERS.flatMap((user) => [
  ['T1', ...user] as [Tier, ...User],
  ['T2', ...user] as [Tier, ...User],
]);

export interface Entry {
  source: string;
  kind: string;
  data: Record<string, unknown>;
}

export interface Ran {
  status: number | null;
  stdout: string;
  stderr: string;
}

export class Desk {
  readonly base: string;
  readonly home: string;
  readonly project: string;
  readonly children: ChildProcess[] = [];
  /** Before the program: `nd7 run`, or nothing. */
  options: string[] = [];

  constructor(
    readonly user: { uid?: number; gid?: number },
    readonly tier: Tier = 'T1',
    folder = tmpdir(),
  ) {
    this.base = realpathSync(mkdtempSync(join(folder, 'nd7-broker-')));
    this.home = join(this.base, 'home');
    this.project = join(this.home, 'project');
    chmodSync(this.base, 0o777);
    spawnSync('mkdir', ['-p', this.project], user);
  }

  policy(document: object): void {
    const text = JSON.stringify({ nd7: 1, ...document });
    const script = 'umask 077; mkdir -p "$HOME/.nd7"; cat > "$HOME/.nd7/policy.jsonc"';
    spawnSync('sh', ['-c', script], { env: this.environment, input: text, ...this.user });
  }

  get environment(): Record<string, string> {
    return { PATH: '/usr/local/bin:/usr/bin:/bin', HOME: this.home, SHELL: '/bin/bash', LANG: 'C.UTF-8' };
  }

  /** Lays the agent down: a script of /bin/sh in which $S is what it takes for its shell. Outside, that is /bin/bash. */
  #lay(script: string): string {
    const path = join(this.project, 'agent.sh');
    writeFileSync(path, `#!/bin/sh\nS=\${CLAUDE_CODE_SHELL:-/bin/bash}\n${script}\n`, { mode: 0o755 });
    return path;
  }

  #command(script: string): string[] {
    return [
      process.execPath,
      BIN,
      'run',
      '--tier',
      this.tier,
      ...this.options,
      '--agent',
      'claude-code',
      '--',
      this.#lay(script),
    ];
  }

  inside(script: string, more: object = {}): Ran {
    const [program = '', ...args] = this.#command(script);
    const how = { cwd: this.project, env: this.environment, encoding: 'utf8' as const, timeout: 120_000 };
    const { status, stdout, stderr } = spawnSync(program, args, { ...how, ...this.user, ...more });
    return { status, stdout, stderr };
  }

  outside(script: string, more: object = {}): Ran {
    const how = { cwd: this.project, env: this.environment, encoding: 'utf8' as const, timeout: 120_000 };
    const { status, stdout, stderr } = spawnSync(this.#lay(script), { ...how, ...this.user, ...more });
    return { status, stdout, stderr };
  }

  /** What the person types in another terminal, in the same folder. */
  nd7(...args: string[]): Ran {
    const how = { cwd: this.project, env: this.environment, encoding: 'utf8' as const, timeout: 60_000 };
    const { status, stdout, stderr } = spawnSync(process.execPath, [BIN, ...args], { ...how, ...this.user });
    return { status, stdout, stderr };
  }

  start(script: string): ChildProcess {
    const [program = '', ...args] = this.#command(script);
    const child = spawn(program, args, {
      cwd: this.project,
      env: this.environment,
      stdio: ['ignore', 'pipe', 'pipe'],
      ...this.user,
    });
    this.children.push(child);
    return child;
  }

  /** The entries of the newest session's own chain. */
  entries(): Entry[] {
    const sessions = join(this.home, '.nd7/sessions');
    const chains = existsSync(sessions) ? readdirSync(sessions).filter((name) => name.startsWith('run-')) : [];
    const logs = chains.map((name) => readFileSync(join(sessions, name, 'log.jsonl'), 'utf8'));
    const time = (log: string): string => /"time":"([^"]+)"/.exec(log)?.[1] ?? '';
    const newest = logs.sort((a, b) => (time(a) < time(b) ? 1 : -1))[0] ?? '';
    return newest
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line) as Entry);
  }

  of(kind: string): Record<string, unknown>[] {
    return this.entries()
      .filter((entry) => entry.kind === kind)
      .map(({ data }) => data);
  }

  close(): void {
    for (const child of this.children) child.kill('SIGKILL');
    // Recorders are started by whoever needs one.
    spawnSync(process.execPath, [BIN, 'recorder', '--stop'], { env: this.environment, ...this.user });
    // A front may end before what adds nothing to the record is put away (docs/adr/0041), and what comes while a folder is emptied is not
    // looked for again by one removal, however often it tries.
    for (const until = Date.now() + 5000; ;)
      try {
        return rmSync(this.base, { recursive: true, force: true });
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'ENOTEMPTY' || Date.now() > until) throw error;
      }
  }
}
