// A place in which small real jobs of toolchains are run outside and inside `nd7 run`, by root and by an ordinary user.
import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import {
  chmodSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { fetched } from '../e2e/claude.fixture.js';
import { PrivateMachine, USER, type Ran } from '../e2e/managed.fixture.js';

const REPOSITORY = join(import.meta.dirname, '../..');
const JOBS = join(import.meta.dirname, 'jobs');
const BIN = 'apps/agent/bin/nd7.js';

export type Where = 'outside' | 'T1' | 'T2';

/** One of jobs/: a script for bash, with what it needs in the comments at its head. */
export interface Job {
  name: string;
  /** Programs on PATH, `python3:MODULE,…` or paths with wildcards. */
  needs: string[];
  /** Why the job is not there for one of the two. */
  only?: { who: 'user' | 'root'; why: string };
  /** Where it does not work, for one of the two or both, with the words of docs/limits.md that say so. */
  /** What docs/limits.md says of it; `may`: it works on some machines. */
  fails: { tier: string; who: string | undefined; words: string; may: boolean }[];
  text: string;
}

export const jobs: Job[] = readdirSync(JOBS)
  .sort()
  .map((file) => {
    const text = readFileSync(join(JOBS, file), 'utf8');
    const only = /^# (user|root) only: (.*)$/m.exec(text);
    const fails = [...text.matchAll(/^# (T1|T2) (fails|may fail)(?: for (user|root))?: (.*)$/gm)];
    return {
      name: file.replace(/\.sh$/, ''),
      needs: (/^# needs: (.*)$/m.exec(text)?.[1] ?? '').split(' ').filter((word) => word !== ''),
      ...(only === null ? {} : { only: { who: only[1] as 'user' | 'root', why: only[2] ?? '' } }),
      fails: fails.map(([, tier = '', how, who, words = '']) => ({ tier, who, words, may: how === 'may fail' })),
      text,
    };
  });

/** Package managers that come from npm, at the version that the jobs were written with. */
const PACKAGES: Record<string, { spec: string; file: string }> = {
  pnpm: { spec: 'pnpm@10.34.9', file: 'pnpm/bin/pnpm.cjs' },
  yarn: { spec: 'yarn@1.22.22', file: 'yarn/bin/yarn.js' },
  husky: { spec: 'husky@9.1.7', file: 'husky/bin.js' },
};

/** What of a job's needs this machine lacks; undefined where it has all. Root's own tools are not an ordinary user's: only the system's count. */
export function lacks({ needs }: Job): string | undefined {
  const missing = needs.filter((need) => {
    const packed = PACKAGES[need];
    if (packed !== undefined) return 'problem' in fetched(packed.spec, packed.file);
    const [program = '', modules] = need.split(':');
    const asked =
      modules === undefined ? `ls -d ${program} || command -v ${program}` : `${program} -c 'import ${modules}'`;
    return spawnSync('sh', ['-c', asked], { env: { PATH: SYSTEM } }).status !== 0;
  });
  return missing.length === 0 ? undefined : `without ${missing.join(', ')}`;
}

const SYSTEM = '/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin';

/** One user's home and project, the registry of packages that the jobs ask, and where that is not who runs the tests, a machine of his own. */
export class Workbench {
  private constructor(
    private readonly folder: string,
    private readonly machine: PrivateMachine | undefined,
    private readonly registry: { child: ChildProcess; port: number },
  ) {}

  static async make(who: 'user' | 'root'): Promise<Workbench> {
    const parent = process.geteuid?.() === 0 ? '/home' : join(homedir(), '.cache');
    mkdirSync(parent, { recursive: true });
    const folder = realpathSync(mkdtempSync(join(parent, 'nd7-tools-')));
    const home = join(folder, 'home');
    for (const each of [home, join(home, 'bin'), join(folder, 'project')]) mkdirSync(each);
    for (const [name, { spec, file }] of Object.entries(PACKAGES)) {
      const found = fetched(spec, file);
      if ('problem' in found) continue;
      cpSync(
        join(
          found.path,
          file
            .split('/')
            .slice(1)
            .map(() => '..')
            .join('/'),
        ),
        join(home, 'tools', name),
        { recursive: true },
      );
      const script = `#!/bin/sh\nexec node "${join(home, 'tools', file)}" "$@"\n`;
      writeFileSync(join(home, 'bin', name), script, { mode: 0o755 });
    }
    const registry = await startRegistry();
    const policy = { nd7: 1, network: { loopback: [registry.port] } };
    mkdirSync(join(home, '.nd7'), { mode: 0o700 });
    writeFileSync(join(home, '.nd7/policy.jsonc'), JSON.stringify(policy));
    const another = who === 'user' && process.geteuid?.() === 0;
    chmodSync(folder, 0o711);
    if (another) spawnSync('chown', ['-R', `${USER}:${USER}`, home, join(folder, 'project')]);
    const machine = another ? await PrivateMachine.make(join(folder, 'machine'), home, {}) : undefined;
    return new Workbench(folder, machine, registry);
  }

  /** Runs a job in an empty project and a home that has the tools only. */
  run(job: Job, where: Where): Ran {
    const project = join(this.folder, 'project');
    const home = join(this.folder, 'home');
    for (const [folder, kept] of [
      [project, []],
      [home, ['.nd7', 'bin', 'tools']],
    ] as const)
      for (const name of readdirSync(folder).filter((each) => !(kept as readonly string[]).includes(each)))
        rmSync(join(folder, name), { recursive: true, force: true });
    const repository = this.machine === undefined ? REPOSITORY : '/opt/nd7';
    // Said in the script itself: variables of other names are not passed on inside.
    const script = [
      'set -eEuo pipefail',
      `trap 'echo "line $((LINENO - 5)): $BASH_COMMAND" >&2' ERR`,
      `REGISTRY=http://127.0.0.1:${this.registry.port}`,
      `REPOSITORY=${repository} HUSKY=${join(home, 'tools/husky')}`,
      '# The job:',
      job.text,
    ].join('\n');
    const node = this.machine === undefined ? process.execPath : this.machine.node;
    const before = where === 'outside' ? [] : [node, join(repository, BIN), 'run', '--tier', where, '--'];
    const [command = '', ...args] = [...before, 'bash', '-c', script];
    const env = {
      PATH: `${join(home, 'bin')}:${SYSTEM}`,
      HOME: home,
      USER: this.machine === undefined ? 'root' : 'dev',
      LANG: 'C.UTF-8',
      TERM: 'xterm',
      SHELL: '/bin/bash',
      NO_COLOR: '1',
    };
    if (this.machine !== undefined) return this.machine.run(USER, project, env, command, ...args);
    const ran = spawnSync(command, args, {
      cwd: project,
      env,
      encoding: 'utf8',
      input: '',
      maxBuffer: 1 << 28,
      timeout: 120_000,
    });
    return { status: ran.status ?? 128, out: ran.stdout, err: ran.stderr };
  }

  end(): void {
    const stop = ['recorder', '--stop'];
    const home = join(this.folder, 'home');
    const env = { PATH: SYSTEM, HOME: home };
    if (this.machine !== undefined) this.machine.run(USER, home, env, this.machine.node, this.machine.nd7, ...stop);
    else spawnSync(process.execPath, [join(REPOSITORY, BIN), ...stop], { env });
    this.machine?.end();
    this.registry.child.kill();
    rmSync(this.folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
  }
}

async function startRegistry(): Promise<{ child: ChildProcess; port: number }> {
  const child = spawn(process.execPath, [join(import.meta.dirname, 'registry.mjs')], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const port = await new Promise<number>((resolve, reject) => {
    child.stdout.once('data', (line: Buffer) => resolve(Number(String(line))));
    child.once('exit', (code) => reject(new Error(`the registry ended with ${code}`)));
  });
  return { child, port };
}
