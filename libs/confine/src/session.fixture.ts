// A home and a project on the real disk, a ruleset made by hand, and programs run inside it by the real launcher.
import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  copyFileSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import type { Access, FileNode, Mask, ProtectedLeaf, Ruleset, Source } from '@nd7/policy';
import type { Learned } from './learned.js';
import type { Front, ObservedEvent } from './observe.js';
import { launch, type Ended, type Launched, type LaunchOptions, type Proof } from './launch.js';
import type { Plan, PlanTier } from './plan.js';
import { prepare, type Prepared } from './session.js';

const NATIVE = join(import.meta.dirname, '../../../native/launch');
const source: Source = { layer: 'fixed', policy: 'test', file: null, line: null, text: 'test' };
const READ: Access = { read: true, write: false, exec: true };
const WRITE: Access = { read: true, write: true, exec: true };
const HIDDEN: Access = { read: false, write: false, exec: false };
/** Users that sessions are tested as: this one, and an ordinary one where this is root. */
export const USERS: [string, { uid: number; gid: number } | undefined][] = [
  [process.geteuid?.() === 0 ? 'root' : 'an ordinary user', undefined],
  ...(process.geteuid?.() === 0
    ? [['an ordinary user', { uid: 65534, gid: 65534 }] as [string, { uid: number; gid: number }]]
    : []),
];

export interface Ran extends Ended {
  stdout: string;
  stderr: string;
  proofs: Proof[];
}

/** Builds the launcher and its sanitized twin. */
export function buildLaunchers(): void {
  const built = spawnSync(process.execPath, [join(NATIVE, 'build.mjs'), '--sanitize'], { encoding: 'utf8' });
  if (built.status !== 0) throw new Error(built.stderr);
}

export class Machine {
  readonly base: string;
  readonly home: string;
  readonly project: string;
  readonly launcher: string;
  nodes: [string, Access][] = [];
  masks: Mask[] = [];
  leaves: ProtectedLeaf[] = [];
  /** Whether sessions have a supervisor, and who answers it. */
  isObserved = true;
  heard: ObservedEvent[] = [];
  tier: PlanTier = 'T1';
  /** The newest Landlock that is used. */
  landlockMost: number | undefined;
  patterns: Ruleset['patterns'] = 'names';
  /** Whether sessions learn, and what they told. */
  learns = false;
  learned: (Learned | null)[] = [];
  judge: Front['judge'] = () => Promise.resolve({ allow: false });

  constructor(
    readonly user: { uid: number; gid: number } | undefined,
    build: 'nd7-launch' | 'nd7-launch-sanitized' = 'nd7-launch',
  ) {
    // The repository may lie where an ordinary user cannot go: the launcher is copied to where he can.
    this.base = realpathSync(mkdtempSync(join(tmpdir(), 'nd7-confine-')));
    chmodSync(this.base, 0o755);
    this.home = join(this.base, 'home');
    this.project = join(this.home, 'project');
    const bin = join(this.base, 'bin');
    for (const folder of [this.home, this.project, bin]) mkdirSync(folder, { mode: 0o755 });
    this.launcher = join(bin, 'nd7-launch');
    copyFileSync(join(NATIVE, 'build', build), this.launcher);
    chmodSync(this.launcher, 0o755);
    this.nodes = [
      [this.home, READ],
      [this.project, WRITE],
    ];
  }

  close(): void {
    rmSync(this.base, { recursive: true, force: true });
  }

  /** A file below the home, with the folders above it. Returns its path. */
  file(name: string, content = 'content\n'): string {
    const path = join(this.home, name);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, content);
    return path;
  }

  hide(name: string): void {
    this.nodes.push([join(this.home, name), HIDDEN]);
  }

  show(name: string, access: Partial<Access> = {}): void {
    this.nodes.push([join(this.home, name), { ...READ, ...access }]);
  }

  protect(pattern: string, more: Partial<ProtectedLeaf> = {}): void {
    this.leaves.push({
      at: 'anywhere',
      under: [this.project],
      pattern,
      below: true,
      notBelow: [],
      exceptPaths: [],
      treatment: 'refuse',
      mediator: null,
      because: 'of the test',
      source,
      ...more,
    });
  }

  mask(pattern: string, more: Partial<Mask> = {}): void {
    this.masks.push({
      under: [this.project],
      pattern,
      except: [],
      exceptPaths: [],
      notBelow: [],
      exceptTracked: true,
      source,
      ...more,
    });
  }

  ruleset(): Ruleset {
    const node = ([path, access]: [string, Access]): FileNode => ({
      path,
      access,
      why: { read: source, write: source, exec: source },
    });
    return {
      version: 1,
      home: this.home,
      project: this.project,
      tmp: '/tmp',
      files: [node(['/', READ]), ...this.nodes.map(node)],
      reasons: [node(['/', READ]), ...this.nodes.map(node)],
      masks: this.masks,
      leaves: this.leaves,
      makeFolders: [],
      seeds: [],
      sockets: [],
      network: { hosts: [], bounds: [], listen: [], loopback: [], credentials: [] },
      environment: { pass: [{ pattern: '*', source }], unset: [], set: [] },
      privateTmp: true,
      patterns: this.patterns,
      weakestTier: 'T1',
      required: [],
      recording: 'best-effort',
      layers: [],
    };
  }

  /** The plan for a command; everything below the home is given to the machine's user first. */
  prepare(argv: readonly string[], change: Partial<Plan> = {}): Prepared {
    const { user } = this;
    const prepared = prepare({
      ruleset: this.ruleset(),
      argv,
      environment: { PATH: '/usr/local/bin:/usr/bin:/bin', HOME: this.home, LANG: 'C.UTF-8' },
      cwd: this.project,
      nd7Home: join(this.home, '.nd7'),
      userNamespace: true,
      isRoot: (user?.uid ?? process.geteuid?.()) === 0,
      listeners: [],
      routes: [],
      resolvesNames: false,
      variables: {},
      isFront: false,
      isObserved: this.isObserved,
      tier: this.tier,
      landlockMost: this.landlockMost,
      learns: this.learns,
    });
    if (user !== undefined) {
      give(this.home, user);
      // Folders that belong to this process, where the session's own would be its user's.
      const { view, environment } = prepared.plan;
      const shared = view.find((one) => one.kind === 'show' && one.path === '/dev/shm');
      const own = [environment['TMPDIR'], shared?.kind === 'show' ? shared.source : undefined];
      if (this.tier !== 'T1') for (const path of own) if (path !== undefined) give(path, user);
    }
    return { ...prepared, plan: { ...prepared.plan, ...change } };
  }

  start(
    argv: readonly string[],
    change: Partial<Plan> = {},
    options: LaunchOptions = {},
  ): Launched & { prepared: Prepared } {
    const prepared = this.prepare(argv, change);
    const launched = launch(this.launcher, prepared.plan, {
      stdio: ['ignore', 'pipe', 'pipe'],
      front: {
        judge: (question) => this.judge(question),
        heard: (event) => this.heard.push(event),
        learned: (seen) => this.learned.push(seen),
      },
      ...(this.user === undefined ? {} : { user: this.user }),
      ...options,
    });
    return { ...launched, prepared };
  }

  /** Runs a shell script inside, to its end. */
  async run(script: string, change: Partial<Plan> = {}): Promise<Ran> {
    const session = this.start(['/bin/sh', '-c', script], change);
    const said = { stdout: '', stderr: '' };
    session.process.stdout?.on('data', (bytes: Buffer) => (said.stdout += bytes.toString()));
    session.process.stderr?.on('data', (bytes: Buffer) => (said.stderr += bytes.toString()));
    const started = await session.started;
    const ended = await session.ended;
    session.prepared.clean();
    return { ...said, ...ended, proofs: started?.proofs ?? [] };
  }

  /** Everything below the home: paths, kinds, modes, sizes. */
  tree(): string[] {
    const list: string[] = [];
    const visit = (folder: string): void => {
      for (const name of readdirSync(folder).sort()) {
        const path = join(folder, name);
        const stat = lstatSync(path);
        list.push(`${path} ${stat.mode.toString(8)} ${stat.isDirectory() ? '' : stat.size}`);
        if (stat.isDirectory()) visit(path);
      }
    };
    visit(this.home);
    return list;
  }
}

function give(folder: string, user: { uid: number; gid: number }): void {
  chownSync(folder, user.uid, user.gid);
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) give(path, user);
    else if (!entry.isSymbolicLink()) chownSync(path, user.uid, user.gid);
  }
}

/** Waits until a condition holds. */
export async function until(what: string, condition: () => boolean, ms = 20_000): Promise<void> {
  const end = Date.now() + ms;
  while (!condition()) {
    if (Date.now() > end) throw new Error(`it did not come to pass: ${what}`);
    await new Promise((done) => setTimeout(done, 20));
  }
}

export const isAlive = (pid: number): boolean => existsSync(`/proc/${pid}`);
