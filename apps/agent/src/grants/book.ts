// The grants, denials and requests of one living session: each an entry on the disk before it acts, each with an end.
import type { Facts, NetworkRules, Ruleset, Source } from '@nd7/policy';
import { CliError } from '../cli/io.js';
import { safeLine } from '../show/safe.js';
import type { Author } from './author.js';
import { recordedWanted, type Denial, type Grant, type Request } from './entry.js';
import { Holding, realPath, SOURCE, type HoldingParts, type Widening } from './holding.js';
import { asCliError, placed, refuseHeld, risksOf, ruled } from './ruling.js';
import { actsFor, insteadOf, IN_VIEW, unreached, type Extent } from './extent.js';
import { Deadline, type Scope } from './scope.js';
import { isUnder, namesSame } from './cover.js';
import { wantedText, type Wanted } from './wanted.js';

export interface BookParts extends HoldingParts {
  /** Whether tool calls are seen, so that a grant can end with one. */
  seesCalls: boolean;
  facts: Facts;
}

/** What was done about a grant, a denial or their ends. */
export interface Done {
  grants: Grant[];
  denials: Denial[];
  /** Connections that were ended by it. */
  closed: number;
}

/** So many grants and denials may live at once. */
const MOST_LIVING = 200;

export class GrantBook {
  readonly requests: Request[] = [];
  /** Told when a request has been decided. */
  onDecided: (request: Request) => void = () => undefined;
  readonly #holding: Holding;
  readonly #nd7Home: string;

  constructor(private readonly parts: BookParts) {
    this.#holding = new Holding(parts);
    this.#nd7Home = realPath(parts.policies.places.nd7Home);
  }

  /** Told when a grant has ended. */
  set onEnded(told: () => void) {
    this.#holding.onEnded = told;
  }

  /** What holds now. */
  get ruleset(): Ruleset {
    return this.#holding.ruleset;
  }

  /** The rules of the network, as the proxy asks for them with each request. */
  get network(): NetworkRules {
    return this.ruleset.network;
  }

  /** The same for who is of no call. */
  get networkOutsideCalls(): NetworkRules {
    return this.#holding.rulesetOutsideCalls.network;
  }

  get grants(): readonly Grant[] {
    return this.#holding.grants;
  }

  get denials(): readonly Denial[] {
    return this.#holding.denials;
  }

  /** Whether a grant lives that ends with a call. */
  get awaitsCall(): boolean {
    return this.#holding.living.some(({ scope }) => scope === 'call');
  }

  /** How far they come; with a mount view, until the session runs. */
  extent: Extent = IN_VIEW;

  /** What makes grants of paths and sockets hold, as soon as the session runs. */
  attach(widening: Widening): void {
    this.#holding.widening = widening;
  }

  /** A number that no other grant, denial or request of this session has. */
  nextId(): number {
    return this.#holding.nextId();
  }

  /** The warnings that a person has to have seen. Throws `CliError` for what cannot be granted. */
  risks(wanted: readonly Wanted[], scope: Scope): string[] {
    return this.#prepared(wanted, scope, () => 0).flatMap(({ risks, place }) =>
      risks.map((text) => `${wantedText(place)}: ${text}`),
    );
  }

  /** Grants all of it, or the first part that fails throws and what came before stands. Throws `CliError`. */
  allow(wanted: readonly Wanted[], scope: Scope, by: Author, request: string | null = null): Promise<Done> {
    return this.#holding.inTurn(async () => {
      const done: Done = { grants: [], denials: [], closed: 0 };
      for (const { place, id, number, lifts } of this.#prepared(wanted, scope, () => this.nextId())) {
        for (const denial of lifts) done.denials.push(await this.#holding.lift(denial, by));
        const deadline = typeof scope === 'number' ? new Deadline(this.#holding.clocks, scope) : undefined;
        const grant: Grant = {
          id,
          wanted: place,
          scope,
          by,
          made: new Date(this.#holding.clocks.wall()),
          deadline,
          native: [],
          calls: new Set(),
          uses: place.right === 'net' || place.right === 'write' ? 0 : null,
          reaches: actsFor(place, this.extent) ?? null,
          request,
          ended: undefined,
        };
        await this.#holding.make(grant, number);
        done.grants.push(grant);
      }
      this.#answerRequests();
      return done;
    });
  }

  /** Refuses for as long as the session lives; ends the grants that say otherwise. Throws `CliError`. */
  deny(wanted: Wanted, by: Author): Promise<Done> {
    return this.#holding.inTurn(async () => {
      const place = wanted.right === 'net' ? wanted : { ...wanted, below: true };
      const denial: Denial = {
        id: `d${this.nextId()}`,
        wanted: place,
        by,
        made: new Date(this.#holding.clocks.wall()),
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
      this.#holding.hold(denial);
      const against = this.#holding.living.filter((grant) => this.#holding.deniedBy(grant.wanted).length > 0);
      const grants = await this.#holding.end(against, 'denied', by);
      for (const request of this.requests.filter(
        ({ state, wanted: asked }) => state === 'pending' && this.#holding.deniedBy(asked).length > 0,
      ))
        this.#decide(request, 'denied');
      return { grants, denials: [denial], closed: this.parts.recheck() };
    });
  }

  /** Refuses one request: it, and the same asked again, is answered so. */
  refuse(request: Request, by: Author): Promise<void> {
    return this.#holding.inTurn(async () => {
      const data = { id: request.id, verdict: 'deny', ...recordedWanted(request.wanted), request: request.id, by };
      await this.parts.note('rule.deny', data, `that ${request.id} is refused`, SOURCE);
      this.#decide(request, 'denied');
    });
  }

  /** Ends grants and denials by their ids, or all of them. Throws `CliError` for an id that nothing living has. */
  revoke(ids: readonly string[] | 'all', by: Author): Promise<Done> {
    return this.#holding.inTurn(async () => {
      const named = (id: string): boolean => ids === 'all' || ids.includes(id);
      const grants = this.#holding.living.filter(({ id }) => named(id));
      const denials = this.#holding.denying.filter(({ id }) => named(id));
      const known = [...grants, ...denials].map(({ id }) => id);
      const unknown = ids === 'all' ? [] : ids.filter((id) => !known.includes(id));
      if (unknown.length > 0)
        throw new CliError(
          1,
          `no living grant or denial is called ${safeLine(unknown.join(', '))}`,
          '`nd7 grants` lists them.',
          'no-grant',
        );
      const ended = await this.#holding.end(grants, 'revoked', by);
      const lifted: Denial[] = [];
      for (const denial of denials) lifted.push(await this.#holding.lift(denial, by));
      return { grants: ended, denials: lifted, closed: this.parts.recheck() };
    });
  }

  /** A tool call of the session’s agent begins: the first one after it was made is what a grant for a call is for. */
  callBegan(call: string): void {
    for (const grant of this.#holding.living) if (grant.scope === 'call') grant.calls.add(call);
  }

  /** A tool call has ended: so has what was granted for it. One that ran already when the grant was made ends nothing: it may be what asked. */
  callEnded(call: string): Promise<void> {
    return this.#holding.inTurn(async () => {
      await this.#holding.end(
        this.#holding.living.filter(({ scope, calls }) => scope === 'call' && calls.has(call)),
        'call ended',
        undefined,
      );
      this.parts.recheck();
    });
  }

  /** Counts a decision that a grant made. */
  used(source: Source | null): void {
    if (source?.layer !== 'grant') return;
    const grant = this.grants.find(({ id }) => id === source.policy);
    if (grant?.uses !== undefined && grant.uses !== null) grant.uses++;
  }

  /** Counts a call that the supervisor has done by a grant, of which it knows the number. */
  performed(id: number): Grant | undefined {
    const grant = this.grants.find(({ native }) => native.includes(id));
    if (grant?.uses !== undefined && grant.uses !== null) grant.uses++;
    return grant;
  }

  close(): void {
    this.#holding.close();
    for (const request of this.requests.filter(({ state }) => state === 'pending')) this.#decide(request, 'denied');
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
    const lifts = this.#holding.deniedBy(place).filter((denial) => namesSame(denial.wanted, place));
    const others = this.#holding.denying.filter((denial) => !lifts.includes(denial));
    const [denied] = this.#holding.deniedBy(place).filter((denial) => !lifts.includes(denial));
    if (denied !== undefined)
      throw new CliError(
        1,
        `${safeLine(wantedText(place))} was denied in this session (${denied.id}: ${safeLine(denied.wanted.what)})`,
        `nd7 revoke ${denied.id} lifts that.`,
        'held',
      );
    const candidate = ruled(this.parts.policies, [...this.#holding.living, { id, wanted: place }], others);
    refuseHeld(candidate, id, place, this.#nd7Home, this.parts.facts);
    const useless = unreached(place, this.extent);
    if (useless !== undefined)
      throw new CliError(
        1,
        `${safeLine(wantedText(place))} would do nothing: ${useless}`,
        safeLine(insteadOf(place, this.extent)),
        'no-reach',
      );
    if (place.right !== 'net' && this.#holding.widening === undefined)
      throw new CliError(
        1,
        'this session cannot be given paths or sockets any more: it has no supervisor that would',
        'Say --allow at the start: nd7 run --allow …',
        'no-widening',
      );
    return { place, id, number, lifts, risks: risksOf(this.ruleset, candidate, id, place, this.parts.facts) };
  }

  #refuseTooMany(): void {
    if (this.#holding.living.length + this.#holding.denying.length >= MOST_LIVING)
      throw new CliError(
        1,
        `${MOST_LIVING} grants and denials live in this session`,
        'Revoke some first: nd7 grants lists them.',
        'too-many',
      );
  }

  #answerRequests(): void {
    for (const request of this.requests) {
      const covering = this.#holding.living.find(({ wanted }) => isUnder(request.wanted, wanted));
      if (request.state === 'pending' && covering !== undefined) this.#decide(request, 'granted');
    }
  }

  #decide(request: Request, state: 'granted' | 'denied'): void {
    request.state = state;
    this.onDecided(request);
  }
}

interface Prepared {
  place: Wanted;
  id: string;
  number: number;
  lifts: Denial[];
  risks: string[];
}
