import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readFileSync, realpathSync, writeFileSync } from 'node:fs';
import { release } from 'node:os';
import { dirname, join } from 'node:path';
import { findLauncher, probeKernel, tiersOf, type KernelFacts, type PlanTier } from '@nd7/confine';
import { findNative } from '@nd7/kernel';
import { openHome } from '@nd7/journal';
import { rulesetHash, type CompileInput, type Ruleset } from '@nd7/policy';
import { CliError } from '../cli/io.js';
import { VERSION } from '../cli/version.js';
import type { Boundary } from '../confine/boundary.js';
import { runSession } from '../confine/run-session.js';
import { Answers } from './answers.js';
import { ATTACKS } from './attacks.js';
import { judge, lacks, type Judged, type Side, type Verdict } from './judge.js';
import { keep } from './kept.js';
import { sweep, Traces } from './traces.js';
import { grantAndRevoke } from './widening.js';
import { World, type Places } from './world.js';

export interface SelftestRequest {
  /** The kind of boundary; `auto`: the one that `nd7 run` takes here. */
  tier?: PlanTier | 'auto';
  ruleset: Ruleset;
  /** What it was compiled from. */
  policies: CompileInput;
  nd7Home: string;
  environment: NodeJS.ProcessEnv;
  cwd: string;
  warn(text: string): void;
  /** Told how many attempts of how many have been made, twins and those inside together. */
  progress(done: number, total: number): void;
}

export type Counts = Record<Verdict, number>;

export interface Selftest {
  boundary: Boundary;
  kernel: string;
  /** Hash of the ruleset that was in force. */
  ruleset: string;
  judged: Judged[];
  counts: Counts;
}

/** What the probes are called inside. */
const PROBES_INSIDE = '/run/nd7-probes';
const INTERRUPTING = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/** A signal has ended the self-test; all that it made is gone. */
export class Interrupted extends Error {
  constructor(readonly signal: NodeJS.Signals) {
    super(`ended by ${signal}`);
  }
}

/**
 * Makes all attempts inside a boundary as `nd7 run` makes it, and outside by a twin, judges them, records the result and keeps it for `nd7
 * doctor`. Throws `CliError`: 2 where no boundary can be made here, 1 where the attempts did not come to their end or could not be recorded.
 */
export async function selftest(request: SelftestRequest): Promise<Selftest> {
  const launcher = await findLauncher();
  if ('problem' in launcher) throw new CliError(2, launcher.problem, undefined, 'no-launcher');
  openHome(request.nd7Home);
  const home = realpathSync(request.nd7Home);
  sweep(home);
  const { tier = 'auto' } = request;
  const [strongest = 'T1'] = tier === 'auto' ? takenOf(probeKernel(launcher.path), request.ruleset) : [tier];
  // Without them their rows are skipped, by name.
  const probes = await findNative('nd7-probes');
  const run = new Run(request, strongest, new Traces(home), 'path' in probes ? probes.path : undefined);
  try {
    return await run.make();
  } finally {
    await run.end();
  }
}

/** The tiers that would be taken unasked: T3 only where the rules say so. */
function takenOf(facts: KernelFacts, { weakestTier }: Ruleset): PlanTier[] {
  return tiersOf(facts).given.filter((tier) => tier !== 'T3' || weakestTier === 'T3');
}

/** One self-test from the making of its targets to their end. */
class Run {
  readonly #worlds: World[] = [];
  readonly #answers: Answers[] = [];
  #signal: NodeJS.Signals | undefined;
  #twin: ChildProcess | undefined;
  readonly #interrupt = (signal: NodeJS.Signals): void => {
    this.#signal ??= signal;
    this.#twin?.kill('SIGKILL');
  };

  constructor(
    private readonly request: SelftestRequest,
    private readonly tier: PlanTier,
    private readonly traces: Traces,
    private readonly probes: string | undefined,
  ) {
    for (const signal of INTERRUPTING) process.on(signal, this.#interrupt);
  }

  async make(): Promise<Selftest> {
    const folders = this.#folders();
    const code = readFileSync(new URL('./inside.js', import.meta.url), 'utf8');
    const argv = ['--input-type=module', '-e', code];
    const twin = await this.#outside(folders, argv);
    if (this.#signal !== undefined) throw new Interrupted(this.#signal);
    const { boundary, judged } = await this.#inside(folders, argv, twin);
    const counts: Counts = { held: 0, admitted: 0, 'not-held': 0, 'not-shown': 0, skipped: 0 };
    for (const { verdict } of judged) counts[verdict] += 1;
    const ruleset = rulesetHash(this.request.ruleset);
    const kernel = release();
    keep(this.request.nd7Home, { version: VERSION, kernel, ruleset, time: Date.now(), counts });
    return { boundary, kernel, ruleset, judged, counts };
  }

  async end(): Promise<void> {
    this.#twin?.kill('SIGKILL');
    for (const answers of this.#answers) answers.close();
    for (const world of this.#worlds) await world.end();
    this.traces.remove();
    for (const signal of INTERRUPTING) process.removeListener(signal, this.#interrupt);
  }

  #folders(): Places {
    const { ruleset } = this.request;
    const outside = this.traces.folderIn(ruleset.home, 0o700);
    if (outside === undefined)
      throw new CliError(
        1,
        `no folder for the targets can be made in ${ruleset.home}`,
        'Say by HOME where your home folder is, and see that it can be written.',
      );
    return {
      outside,
      hidden: this.traces.hidden,
      project: this.traces.folderIn(ruleset.project, 0o700),
      tmp: this.traces.folderIn('/tmp', 0o700),
      varTmp: this.traces.folderIn('/var/tmp', 0o700),
      shm: this.traces.folderIn('/dev/shm', 0o700),
    };
  }

  /** Targets of one side, in folders of its own. */
  async #world(side: string, folders: Places, probes: string | undefined, copyTo?: string): Promise<World> {
    const places = Object.fromEntries(
      Object.entries(folders).map(([place, folder]: [string, string | undefined]) => {
        if (folder === undefined) return [place, undefined];
        mkdirSync(join(folder, side), { mode: 0o700 });
        return [place, join(folder, side)];
      }),
    ) as unknown as Places;
    const world = await World.make(
      places,
      probes,
      this.probes,
      copyTo ?? join(places.outside, 'copy'),
      this.request.policies,
    );
    this.#worlds.push(world);
    return world;
  }

  #answer(world: World, before: number): Answers {
    const attempts = ATTACKS.filter((attack) => lacks(attack, world) === undefined).map((attack) => ({
      name: attack.name,
      does: attack.does(world).map(String),
    }));
    const answers = new Answers(
      world.places.hidden,
      attempts,
      (port) => world.reach(port),
      (count) => this.request.progress(before + count, 2 * ATTACKS.length),
    );
    this.#answers.push(answers);
    return answers;
  }

  async #outside(folders: Places, argv: readonly string[]): Promise<Side> {
    const world = await this.#world('t', folders, this.probes);
    const answers = this.#answer(world, 0);
    world.late();
    const mark = world.at('project', 'granted/mark');
    if (mark !== undefined) {
      mkdirSync(dirname(mark));
      writeFileSync(mark, 'over');
    }
    // Without variables that lead elsewhere: a proxy of the person's is not to be asked for this.
    this.#twin = spawn(process.execPath, argv, {
      stdio: [...answers.stdio],
      env: { PATH: this.request.environment['PATH'] },
      cwd: '/',
    });
    await once(this.#twin, 'close');
    answers.end();
    await world.settle();
    return { world, came: answers.came };
  }

  async #inside(
    folders: Places,
    argv: readonly string[],
    twin: Side,
  ): Promise<{ boundary: Boundary; judged: Judged[] }> {
    const { request, probes } = this;
    const copyTo = `/tmp/nd7-probes-${this.traces.id}`;
    // Without a mount view they are where they are.
    const source = probes && realpathSync(probes);
    const shown = this.tier === 'T1' ? source && PROBES_INSIDE : source;
    const world = await this.#world('i', folders, shown, copyTo);
    const answers = this.#answer(world, ATTACKS.length);
    let boundary: Boundary | undefined;
    let judged: Judged[] = [];
    const ended = await runSession({
      ruleset: request.ruleset,
      policies: request.policies,
      argv: [process.execPath, ...argv],
      attachment: undefined,
      nd7Home: request.nd7Home,
      environment: request.environment,
      cwd: request.cwd,
      stdio: answers.stdio,
      tier: this.tier,
      attacked: folders.project === undefined ? [] : [folders.project],
      shows: source === undefined || shown === undefined ? [] : [{ path: shown, source }],
      warn: request.warn,
      decided: () => undefined,
      started: (made) => {
        boundary = made;
        world.late();
        const [folder, mark] = [world.at('outside', 'granted'), world.at('project', 'granted/mark')];
        if (folder !== undefined && mark !== undefined) void grantAndRevoke(request.nd7Home, folder, mark);
      },
      beforeEnd: async (record) => {
        answers.end();
        if (this.#signal !== undefined) return;
        await world.settle();
        const rows = new Map(boundary?.rows.map((row) => [row.property, row]));
        const side = { world, came: answers.came };
        judged = ATTACKS.map((attack) => judge(attack, side, twin, rows.get(attack.property), request.ruleset));
        await record.note('selftest', summary(judged), 'the self-test’s result');
      },
    });
    if (this.#signal !== undefined) throw new Interrupted(this.#signal);
    // Gaps count whatever became of the rest.
    const isWhole = ended.code === 0 || judged.some(({ verdict }) => verdict === 'not-held');
    if (boundary === undefined || !isWhole)
      throw new CliError(
        1,
        `the attempts inside did not come to their end (${ended.code ?? ended.signal}): ${answers.complaint}`,
        `They are run by ${process.execPath}, which has to be readable and executable inside: nd7 why ${process.execPath}`,
        'incomplete',
      );
    return { boundary, judged };
  }
}

/** As it stands in the record: names by verdict, those that held as a count. */
function summary(judged: readonly Judged[]): Record<string, unknown> {
  const named = (verdict: Verdict): string[] => judged.filter((one) => one.verdict === verdict).map(({ name }) => name);
  return {
    kernel: release(),
    version: VERSION,
    held: named('held').length,
    admitted: named('admitted'),
    not_held: named('not-held'),
    not_shown: named('not-shown'),
    skipped: named('skipped'),
  };
}
