// The grants, denials and requests of one living session: each an entry on the disk before it acts, each with an end.
import { realpathSync } from 'node:fs';
import type { CompileInput, Facts, NetworkRules, Ruleset, Source } from '@nd7/policy';
import { CliError } from '../cli/io.js';
import { safeLine } from '../show/safe.js';
import type { Author } from './author.js';
import { recordedWanted, type Denial, type EndReason, type Grant, type Request } from './entry.js';
import { asCliError, placed, refuseHeld, risksOf, ruled } from './ruling.js';
import { Deadline, scopeText, systemClocks, type Clocks, type Scope } from './scope.js';
import { isUnder, namesSame } from './cover.js';
import { wantedText, type Wanted } from './wanted.js';

/** What makes a grant of a path or a socket hold in a living session. */
export interface Widening {
  widen(grant: { id: number; what: 'read' | 'write' | 'socket'; path: string; below: boolean }): Promise<void>;
  narrow(id: number): Promise<void>;
}

export interface BookParts {
  policies: CompileInput;
  /** What they compile to. */
  ruleset: Ruleset;
  /** Appends an entry to the session's chain and waits for the disk; throws where that fails and the policy requires a record. */
  note(kind: string, data: Record<string, unknown>, what: string, source: string): Promise<void>;
  /** Ends the connections to what the rules no longer let through; answers how many. */
  recheck(): number;
  /** Whether tool calls are seen, so that a grant can end with one. */
  seesCalls: boolean;
  facts: Facts;
  clocks?: Clocks;
}

/** What was done about a grant, a denial or their ends. */
export interface Done {
  grants: Grant[];
  denials: Denial[];
  /** Connections that were ended by it. */
  closed: number;
}

const SOURCE = 'decision:grant';
/** So many grants and denials may live at once, and so many that have ended are remembered for the listing. */
const MOST_LIVING = 200;
const MOST_ENDED = 200;
/** How often the clocks are looked at: a sleep of the machine stops the timer, not the wall's clock. */
const LOOK_MS = 1_000;

export class GrantBook {
  readonly requests: Request[] = [];
  /** Told when a request has been decided. */
  onDecided: (request: Request) => void = () => undefined;
  /** Told when a grant has ended. */
  onEnded: () => void = () => undefined;
  #grants: Grant[] = [];
  #denials: Denial[] = [];
  #ruleset: Ruleset;
  #widening: Widening | undefined;
  #next = 1;
  #timer: NodeJS.Timeout | undefined;
  #turn: Promise<unknown> = Promise.resolve();
  readonly #clocks: Clocks;
  readonly #nd7Home: string;

  constructor(private readonly parts: BookParts) {
    this.#clocks = parts.clocks ?? systemClocks;
    this.#ruleset = parts.ruleset;
    this.#nd7Home = realPath(parts.policies.places.nd7Home);
  }

  /** What holds now. */
  get ruleset(): Ruleset {
    this.#expire();
    return this.#ruleset;
  }

  /** The rules of the network, as the proxy asks for them with each request. */
  get network(): NetworkRules {
    return this.ruleset.network;
  }

  get grants(): readonly Grant[] {
    return this.#grants;
  }

  get denials(): readonly Denial[] {
    return this.#denials;
  }

  /** Whether a grant lives that ends with a call. */
  get awaitsCall(): boolean {
    return this.#living.some(({ scope }) => scope === 'call');
  }

  /** What makes grants of paths and sockets hold, as soon as the session runs. */
  attach(widening: Widening): void {
    this.#widening = widening;
  }

  /** A number that no other grant, denial or request of this session has. */
  nextId(): number {
    return this.#next++;
  }

  /** The warnings that a person has to have seen. Throws `CliError` for what cannot be granted. */
  risks(wanted: readonly Wanted[], scope: Scope): string[] {
    return this.#prepared(wanted, scope, () => 0).flatMap(({ risks, place }) =>
      risks.map((text) => `${wantedText(place)}: ${text}`),
    );
  }

  /** Grants all of it, or the first part that fails throws and what came before stands. Throws `CliError`. */
  allow(wanted: readonly Wanted[], scope: Scope, by: Author, request: string | null = null): Promise<Done> {
    return this.#inTurn(async () => {
      const done: Done = { grants: [], denials: [], closed: 0 };
      for (const { place, id, number, lifts } of this.#prepared(wanted, scope, () => this.nextId())) {
        for (const denial of lifts) done.denials.push(await this.#lift(denial, by));
        const deadline = typeof scope === 'number' ? new Deadline(this.#clocks, scope) : undefined;
        const grant: Grant = {
          id,
          wanted: place,
          scope,
          by,
          made: new Date(this.#clocks.wall()),
          deadline,
          native: [],
          calls: new Set(),
          uses: place.right === 'net' || place.right === 'write' ? 0 : null,
          request,
          ended: undefined,
        };
        await this.#make(grant, number);
        done.grants.push(grant);
      }
      this.#answerRequests();
      return done;
    });
  }

  /** Refuses for as long as the session lives; ends the grants that say otherwise. Throws `CliError`. */
  deny(wanted: Wanted, by: Author): Promise<Done> {
    return this.#inTurn(async () => {
      const place = wanted.right === 'net' ? wanted : { ...wanted, below: true };
      const denial: Denial = {
        id: `d${this.nextId()}`,
        wanted: place,
        by,
        made: new Date(this.#clocks.wall()),
        ended: undefined,
      };
      try {
        ruled(this.parts.policies, [], [denial]);
      } catch (error) {
        throw asCliError(error);
      }
      this.#refuseTooMany();
      const data = { id: denial.id, verdict: 'deny', ...recordedWanted(place), by };
      await this.parts.note('rule.deny', data, `the denial ${denial.id}`, SOURCE);
      this.#denials.push(denial);
      const against = this.#living.filter((grant) => this.#deniedBy(grant.wanted).length > 0);
      const grants = await this.#end(against, 'denied', by);
      for (const request of this.requests.filter(
        ({ state, wanted: asked }) => state === 'pending' && this.#deniedBy(asked).length > 0,
      ))
        this.#decide(request, 'denied');
      return { grants, denials: [denial], closed: this.parts.recheck() };
    });
  }

  /** Refuses one request: it, and the same asked again, is answered so. */
  refuse(request: Request, by: Author): Promise<void> {
    return this.#inTurn(async () => {
      const data = { id: request.id, verdict: 'deny', ...recordedWanted(request.wanted), request: request.id, by };
      await this.parts.note('rule.deny', data, `that ${request.id} is refused`, SOURCE);
      this.#decide(request, 'denied');
    });
  }

  /** Ends grants and denials by their ids, or all of them. Throws `CliError` for an id that nothing living has. */
  revoke(ids: readonly string[] | 'all', by: Author): Promise<Done> {
    return this.#inTurn(async () => {
      const named = (id: string): boolean => ids === 'all' || ids.includes(id);
      const grants = this.#living.filter(({ id }) => named(id));
      const denials = this.#denying.filter(({ id }) => named(id));
      const known = [...grants, ...denials].map(({ id }) => id);
      const unknown = ids === 'all' ? [] : ids.filter((id) => !known.includes(id));
      if (unknown.length > 0)
        throw new CliError(
          1,
          `no living grant or denial is called ${safeLine(unknown.join(', '))}`,
          '`nd7 grants` lists them.',
          'no-grant',
        );
      const ended = await this.#end(grants, 'revoked', by);
      const lifted: Denial[] = [];
      for (const denial of denials) lifted.push(await this.#lift(denial, by));
      return { grants: ended, denials: lifted, closed: this.parts.recheck() };
    });
  }

  /** A tool call of the session’s agent begins: the first one after it was made is what a grant for a call is for. */
  callBegan(call: string): void {
    for (const grant of this.#living) if (grant.scope === 'call') grant.calls.add(call);
  }

  /** A tool call has ended: so has what was granted for it. One that ran already when the grant was made ends nothing: it may be what asked. */
  callEnded(call: string): Promise<void> {
    return this.#inTurn(async () => {
      await this.#end(
        this.#living.filter(({ scope, calls }) => scope === 'call' && calls.has(call)),
        'call ended',
        undefined,
      );
      this.parts.recheck();
    });
  }

  /** Counts a decision that a grant made. */
  used(source: Source | null): void {
    if (source?.layer !== 'grant') return;
    const grant = this.#grants.find(({ id }) => id === source.policy);
    if (grant?.uses !== undefined && grant.uses !== null) grant.uses++;
  }

  /** Counts a call that the supervisor has done by a grant, of which it knows the number. */
  performed(id: number): void {
    const grant = this.#grants.find(({ native }) => native.includes(id));
    if (grant?.uses !== undefined && grant.uses !== null) grant.uses++;
  }

  close(): void {
    clearTimeout(this.#timer);
    for (const request of this.requests.filter(({ state }) => state === 'pending')) this.#decide(request, 'denied');
  }

  get #living(): Grant[] {
    return this.#grants.filter(({ ended }) => ended === undefined);
  }

  get #denying(): Denial[] {
    return this.#denials.filter(({ ended }) => ended === undefined);
  }

  /** Each with its id, what is risky about it, and the denials that it lifts by naming the very same. */
  #prepared(all: readonly Wanted[], scope: Scope, next: () => number): Prepared[] {
    if (scope === 'call' && !this.parts.seesCalls)
      throw new CliError(
        1,
        'no agent is attached to this session, so nobody can tell when a call ends',
        'Say --for 10m or --for session.',
        'no-calls',
      );
    this.#refuseTooMany();
    return all.map((wanted) => {
      try {
        return this.#prepare(placed(wanted), next());
      } catch (error) {
        throw asCliError(error);
      }
    });
  }

  #prepare(place: Wanted, number: number): Prepared {
    const id = `g${number}`;
    const lifts = this.#deniedBy(place).filter((denial) => namesSame(denial.wanted, place));
    const others = this.#denying.filter((denial) => !lifts.includes(denial));
    const [denied] = this.#deniedBy(place).filter((denial) => !lifts.includes(denial));
    if (denied !== undefined)
      throw new CliError(
        1,
        `${safeLine(wantedText(place))} was denied in this session (${denied.id}: ${safeLine(denied.wanted.what)})`,
        `nd7 revoke ${denied.id} lifts that.`,
        'held',
      );
    const candidate = ruled(this.parts.policies, [...this.#living, { id, wanted: place }], others);
    refuseHeld(candidate, id, place, this.#nd7Home, this.parts.facts);
    if (place.right !== 'net' && this.#widening === undefined)
      throw new CliError(
        1,
        'this session cannot be given paths or sockets any more: it has no supervisor that would',
        'Say --allow at the start: nd7 run --allow …',
        'no-widening',
      );
    return { place, id, number, lifts, risks: risksOf(this.#ruleset, candidate, id, place, this.parts.facts) };
  }

  #refuseTooMany(): void {
    if (this.#living.length + this.#denying.length >= MOST_LIVING)
      throw new CliError(
        1,
        `${MOST_LIVING} grants and denials live in this session`,
        'Revoke some first: nd7 grants lists them.',
        'too-many',
      );
  }

  async #make(grant: Grant, number: number): Promise<void> {
    const { id, wanted, scope, by, deadline, request } = grant;
    const data = {
      id,
      verdict: 'allow',
      ...recordedWanted(wanted),
      for: scopeText(scope),
      expires: deadline?.at.toISOString() ?? null,
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
    if (this.#widening === undefined) throw new Error('the session has no supervisor that would');
    const paths = right === 'socket' ? this.#socketsOf(grant) : [what];
    for (const [i, path] of paths.entries()) {
      const id = i === 0 ? number : this.nextId();
      await this.#widening.widen({ id, what: right, path, below });
      grant.native.push(id);
    }
  }

  /** Where a socket lies: of a name, the places that are there. */
  #socketsOf({ id, wanted }: Grant): string[] {
    const { sockets } = ruled(this.parts.policies, [...this.#living], []);
    const real = sockets.filter(({ source }) => source.policy === id).map(({ path }) => realPath(path));
    const there = [...new Set(real)];
    if (there.length === 0) throw new Error(`no socket ${wanted.what} is there`);
    return there;
  }

  async #narrow(grant: Grant): Promise<string | undefined> {
    let problem: string | undefined;
    for (const id of grant.native.splice(0))
      await this.#widening?.narrow(id).catch((error: unknown) => (problem = textOf(error)));
    return problem;
  }

  /** What ends is closed even where that cannot be recorded: it is the recording that then fails. */
  async #end(grants: readonly Grant[], reason: EndReason, by: Author | undefined): Promise<Grant[]> {
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
    grant.ended = { at: new Date(this.#clocks.wall()), reason };
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

  async #lift(denial: Denial, by: Author): Promise<Denial> {
    const data = { id: denial.id, ...recordedWanted(denial.wanted), reason: 'lifted', by };
    await this.parts.note('revoke', data, `the end of the denial ${denial.id}`, SOURCE);
    denial.ended = { at: new Date(this.#clocks.wall()), reason: 'lifted' };
    this.#rule();
    return denial;
  }

  /** The living denials that a thing stands under. */
  #deniedBy(wanted: Wanted): Denial[] {
    return this.#denying.filter(({ wanted: denied }) => isUnder(wanted, denied));
  }

  #rule(): void {
    this.#grants = kept(this.#grants);
    this.#denials = kept(this.#denials);
    this.#ruleset = ruled(this.parts.policies, this.#living, this.#denying);
  }

  /** What is past its time holds no more from this moment on; its entry and the supervisor follow. */
  #expire(): void {
    const over = this.#living.filter(({ deadline }) => deadline?.isOver === true);
    if (over.length === 0) return;
    for (const grant of over) grant.ended = { at: new Date(this.#clocks.wall()), reason: 'expired' };
    this.#rule();
    void this.#inTurn(() => this.#end(over, 'expired', undefined)).catch(() => undefined);
    this.parts.recheck();
  }

  #look(): void {
    clearTimeout(this.#timer);
    this.#expire();
    const left = this.#living.flatMap(({ deadline }) => deadline?.leftMs ?? []);
    if (left.length === 0) return;
    this.#timer = setTimeout(() => this.#look(), Math.max(1, Math.min(LOOK_MS, ...left)));
    this.#timer.unref();
  }

  #answerRequests(): void {
    for (const request of this.requests) {
      const covering = this.#living.find(({ wanted }) => isUnder(request.wanted, wanted));
      if (request.state === 'pending' && covering !== undefined) this.#decide(request, 'granted');
    }
  }

  #decide(request: Request, state: 'granted' | 'denied'): void {
    request.state = state;
    this.onDecided(request);
  }

  /** One after the other: what is looked at is what is changed. */
  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const turn = this.#turn.then(work);
    this.#turn = turn.catch(() => undefined);
    return turn;
  }
}

interface Prepared {
  place: Wanted;
  id: string;
  number: number;
  lifts: Denial[];
  risks: string[];
}

function kept<T extends { ended: unknown }>(all: readonly T[]): T[] {
  const old = all.filter(({ ended }) => ended !== undefined);
  const drop = new Set(old.slice(0, Math.max(0, old.length - MOST_ENDED)));
  return all.filter((one) => !drop.has(one));
}

function realPath(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return path;
  }
}

function textOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
