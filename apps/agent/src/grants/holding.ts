// The grants and denials that live in a session, the rules that they make, and how each of them ends.
import { realpathSync } from 'node:fs';
import type { CompileInput, Ruleset } from '@nd7/policy';
import { CliError } from '../cli/io.js';
import { safeLine } from '../show/safe.js';
import type { Author } from './author.js';
import { recordedWanted, type Denial, type EndReason, type Grant } from './entry.js';
import { ruled } from './ruling.js';
import { scopeText, systemClocks, type Clocks } from './scope.js';
import { isUnder } from './cover.js';
import { wantedText, type Wanted } from './wanted.js';

/** What makes a grant of a path or a socket hold in a living session. */
export interface Widening {
  widen(grant: { id: number; what: 'read' | 'write' | 'socket'; path: string; below: boolean }): Promise<void>;
  narrow(id: number): Promise<void>;
}

export interface HoldingParts {
  policies: CompileInput;
  /** What they compile to. */
  ruleset: Ruleset;
  /** Appends an entry to the session's chain and waits for the disk; throws where that fails and the policy requires a record. */
  note(kind: string, data: Record<string, unknown>, what: string, source: string): Promise<void>;
  /** Ends the connections to what the rules no longer let through; answers how many. */
  recheck(): number;
  clocks?: Clocks;
}

/** Entries about grants. */
export const SOURCE = 'decision:grant';
/** So many grants and denials that have ended are remembered for the listing. */
const MOST_ENDED = 200;
/** How often the clocks are looked at: a sleep of the machine stops the timer, not the wall's clock. */
const LOOK_MS = 1_000;

/** What a person's grants and denials make of a session's rules at this moment. */
export class Holding {
  /** Told when a grant has ended. */
  onEnded: () => void = () => undefined;
  readonly clocks: Clocks;
  widening: Widening | undefined;
  #grants: Grant[] = [];
  #denials: Denial[] = [];
  #ruleset: Ruleset;
  #outsideCalls: Ruleset | undefined;
  #next = 1;
  #timer: NodeJS.Timeout | undefined;
  #turn: Promise<unknown> = Promise.resolve();

  constructor(private readonly parts: HoldingParts) {
    this.clocks = parts.clocks ?? systemClocks;
    this.#ruleset = parts.ruleset;
  }

  /** What holds now. */
  get ruleset(): Ruleset {
    this.#expire();
    return this.#ruleset;
  }

  /** What holds where nothing counts that was granted of the network for a call. */
  get rulesetOutsideCalls(): Ruleset {
    this.#expire();
    const others = this.living.filter(({ scope, wanted }) => scope !== 'call' || wanted.right !== 'net');
    if (others.length === this.living.length) return this.#ruleset;
    this.#outsideCalls ??= ruled(this.parts.policies, others, this.denying);
    return this.#outsideCalls;
  }

  get grants(): readonly Grant[] {
    return this.#grants;
  }

  get denials(): readonly Denial[] {
    return this.#denials;
  }

  get living(): Grant[] {
    return this.#grants.filter(({ ended }) => ended === undefined);
  }

  get denying(): Denial[] {
    return this.#denials.filter(({ ended }) => ended === undefined);
  }

  /** A number that no other grant, denial or request of this session has. */
  nextId(): number {
    return this.#next++;
  }

  /** The living denials that a thing stands under. */
  deniedBy(wanted: Wanted): Denial[] {
    return this.denying.filter(({ wanted: denied }) => isUnder(wanted, denied));
  }

  /** Writes the grant down and makes it hold. Throws `CliError` where that fails: it has ended then, and nothing was widened. */
  async make(grant: Grant, number: number): Promise<void> {
    const { id, wanted, scope, by, deadline, reaches, request } = grant;
    const data = {
      id,
      verdict: 'allow',
      ...recordedWanted(wanted),
      for: scopeText(scope),
      expires: deadline?.at.toISOString() ?? null,
      ...(reaches === null ? {} : { reaches }),
      ...(request === null ? {} : { request }),
      by,
    };
    await this.parts.note('grant', data, `the grant ${id}`, SOURCE);
    this.#grants.push(grant);
    try {
      await this.#widen(grant, number);
    } catch (error) {
      await this.#narrow(grant);
      await this.#over(grant, 'failed', undefined, {
        error: textOf(error),
        errno: (error as { errno?: unknown }).errno ?? null,
      });
      throw new CliError(
        1,
        `${safeLine(wantedText(wanted))} was recorded as ${id} and could not be made to hold: ${safeLine(textOf(error))}`,
        'Nothing was widened.',
        'not-widened',
      );
    }
    this.#rule();
    this.#look();
  }

  async #widen(grant: Grant, number: number): Promise<void> {
    const { right, what, below } = grant.wanted;
    if (right === 'net') return;
    if (this.widening === undefined) throw new Error('the session has no supervisor that would');
    const paths = right === 'socket' ? this.#socketsOf(grant) : [what];
    for (const [i, path] of paths.entries()) {
      const id = i === 0 ? number : this.nextId();
      await this.widening.widen({ id, what: right, path, below });
      grant.native.push(id);
    }
  }

  /** Where a socket lies: of a name, the places that are there. */
  #socketsOf({ id, wanted }: Grant): string[] {
    const { sockets } = ruled(this.parts.policies, [...this.living], []);
    const real = sockets.filter(({ source }) => source.policy === id).map(({ path }) => realPath(path));
    const there = [...new Set(real)];
    if (there.length === 0) throw new Error(`no socket ${wanted.what} is there`);
    return there;
  }

  async #narrow(grant: Grant): Promise<string | undefined> {
    let problem: string | undefined;
    for (const id of grant.native.splice(0))
      await this.widening?.narrow(id).catch((error: unknown) => (problem = textOf(error)));
    return problem;
  }

  /** What ends is closed even where that cannot be recorded: it is the recording that then fails. */
  async end(grants: readonly Grant[], reason: EndReason, by: Author | undefined): Promise<Grant[]> {
    let failure: unknown;
    for (const grant of grants) {
      try {
        await this.#over(grant, reason, by, {});
      } catch (error) {
        failure ??= error;
      }
      const problem = await this.#narrow(grant);
      if (problem !== undefined)
        await this.parts
          .note(
            'alarm',
            { id: grant.id, reason: 'not narrowed', detail: problem },
            `that ${grant.id} could not be ended`,
            SOURCE,
          )
          .catch((error: unknown) => (failure ??= error));
    }
    this.#rule();
    if (failure !== undefined) throw failure;
    return [...grants];
  }

  async #over(grant: Grant, reason: EndReason, by: Author | undefined, more: Record<string, unknown>): Promise<void> {
    grant.ended = { at: new Date(this.clocks.wall()), reason };
    this.onEnded();
    const data = {
      id: grant.id,
      ...recordedWanted(grant.wanted),
      reason,
      uses: grant.uses,
      ...more,
      ...(by === undefined ? {} : { by }),
    };
    await this.parts.note('revoke', data, `the end of the grant ${grant.id}`, SOURCE);
  }

  /** Ends a denial. */
  async lift(denial: Denial, by: Author): Promise<Denial> {
    const data = { id: denial.id, ...recordedWanted(denial.wanted), reason: 'lifted', by };
    await this.parts.note('revoke', data, `the end of the denial ${denial.id}`, SOURCE);
    denial.ended = { at: new Date(this.clocks.wall()), reason: 'lifted' };
    this.#rule();
    return denial;
  }

  /** Refuses from now on; it is on the disk already. */
  hold(denial: Denial): void {
    this.#denials.push(denial);
  }

  #rule(): void {
    this.#grants = kept(this.#grants);
    this.#denials = kept(this.#denials);
    this.#ruleset = ruled(this.parts.policies, this.living, this.denying);
    this.#outsideCalls = undefined;
  }

  /** What is past its time holds no more from this moment on; its entry and the supervisor follow. */
  #expire(): void {
    const over = this.living.filter(({ deadline }) => deadline?.isOver === true);
    if (over.length === 0) return;
    for (const grant of over) grant.ended = { at: new Date(this.clocks.wall()), reason: 'expired' };
    this.#rule();
    void this.inTurn(() => this.end(over, 'expired', undefined)).catch(() => undefined);
    this.parts.recheck();
  }

  #look(): void {
    clearTimeout(this.#timer);
    this.#expire();
    const left = this.living.flatMap(({ deadline }) => deadline?.leftMs ?? []);
    if (left.length === 0) return;
    this.#timer = setTimeout(() => this.#look(), Math.max(1, Math.min(LOOK_MS, ...left)));
    this.#timer.unref();
  }

  close(): void {
    clearTimeout(this.#timer);
  }

  /** One after the other: what is looked at is what is changed. */
  inTurn<T>(work: () => Promise<T>): Promise<T> {
    const turn = this.#turn.then(work);
    this.#turn = turn.catch(() => undefined);
    return turn;
  }
}

function kept<T extends { ended: unknown }>(all: readonly T[]): T[] {
  const old = all.filter(({ ended }) => ended !== undefined);
  const drop = new Set(old.slice(0, Math.max(0, old.length - MOST_ENDED)));
  return all.filter((one) => !drop.has(one));
}

/** Links followed; of what is not there, the path as it was said. */
export function realPath(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return path;
  }
}

function textOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
