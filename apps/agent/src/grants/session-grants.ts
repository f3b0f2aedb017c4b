// All that widens one living session, and what its agent is told of refusals: the grants, the control socket, and what is asked through the door.
import type { Front, ObservedEvent } from '@nd7/confine';
import { readHook } from '@nd7/hooks';
import type { Peer } from '@nd7/kernel';
import type { EgressDecision } from '@nd7/egress';
import { why, type CompileInput, type NetworkRules, type Ruleset, type Source } from '@nd7/policy';
import { factsOf } from '../policy/facts.js';
import type { Answer, Request as Frame } from '../recorder/frames.js';
import type { Client } from '../recorder/peer.js';
import type { Reach } from '../confine/reach.js';
import type { Caller } from '../confine/callers.js';
import type { Owner } from '../confine/commands.js';
import { OpenCalls } from '../confine/open-calls.js';
import type { RunRecord } from '../confine/record.js';
import { Asks } from './asks.js';
import { GrantBook } from './book.js';
import type { Widening } from './holding.js';
import { Control, type Living } from './control.js';
import type { Grant, Request } from './entry.js';
import { Refusals, speaksOfRefusal } from './explain.js';
import type { Extent } from './extent.js';
import { questionFor } from './wanted.js';

export interface SessionGrantsParts {
  policies: CompileInput;
  /** What they compile to. */
  ruleset: Ruleset;
  record: RunRecord;
  /** Folder of the control socket. */
  folder: string;
  living: Living;
  /** Where it is noted what the session was ever let write, by which it is judged what nd7 runs outside. */
  reach: Reach;
  /** Tells the person that a program inside asks for something. */
  asked(request: Request): void;
}

/** Longer payloads of hooks are not read for what they say of refusals. */
const MOST_READ = 4 << 20;

export class SessionGrants {
  readonly #book: GrantBook;
  readonly #asks: Asks;
  readonly #refusals: Refusals;
  readonly #isAttached: boolean;
  readonly #record: RunRecord;
  readonly #started: Ruleset;
  #recheck: () => number = () => 0;
  #control: Control | undefined;
  /** Calls of the agent that have begun and not ended. */
  readonly calls = new OpenCalls();

  readonly #reach: Reach;
  /** Grants and commands of other calls that have used them. */
  readonly #strangers = new Set<string>();
  /** In whose tree a process stands, where commands are seen one by one. */
  ownerOf: (pid: number) => Owner | undefined = () => undefined;
  /** Told where a hook has come from. */
  spoke: (line: readonly Client[]) => void = () => undefined;

  private constructor({ policies, ruleset, record, living, reach, asked }: SessionGrantsParts) {
    const facts = factsOf();
    this.#record = record;
    this.#reach = reach;
    this.#isAttached = living.agent !== null;
    this.#book = new GrantBook({
      policies,
      ruleset,
      note: (...entry) => record.note(...entry),
      recheck: () => this.#recheck(),
      seesCalls: living.agent !== null,
      facts,
    });
    this.#refusals = new Refusals(
      () => this.#book.ruleset,
      () => this.#book.extent,
    );
    this.#started = ruleset;
    this.#book.onEnded = () => this.#refusals.forget();
    this.#asks = new Asks({
      policies,
      book: this.#book,
      facts,
      note: (...entry) => record.note(...entry),
      tell: asked,
      decided: (request) => this.#refusals.decided(request),
    });
  }

  /** Throws the system's error where there can be no control socket. */
  static async open(parts: SessionGrantsParts): Promise<SessionGrants> {
    const grants = new SessionGrants(parts);
    const refused = (by: Peer, detail: string): Promise<void> =>
      parts.record.note('alarm', { reason: 'control refused', detail, by }, 'a refusal at the control socket');
    grants.#control = await Control.open({ folder: parts.folder, book: grants.#book, living: parts.living, refused });
    return grants;
  }

  /**
   * The rules of the network of this moment for who asks. What is granted for a call is not for those of whom it is known that they are of none that runs:
   * processes of a command whose call has ended, and such as have lost whoever was above them.
   */
  networkFor(asker: Pick<Caller, 'tied' | 'call' | 'isStray'> | undefined): NetworkRules {
    const isOver = asker?.tied === 'process' && asker.call !== undefined && !this.calls.has(asker.call);
    return asker?.isStray === true || isOver ? this.#book.networkOutsideCalls : this.#book.network;
  }

  /** All grants that were made, those that have ended too. */
  get made(): readonly Grant[] {
    return this.#book.grants;
  }

  /** The session’s way out, whose connections end with what let them through. */
  reach(way: { recheck(): number }): void {
    this.#recheck = () => way.recheck();
  }

  /** Whether something is granted that programs could not read when the session began. */
  get readsMore(): boolean {
    return this.#book.grants.some(({ ended, wanted }) => {
      if (ended !== undefined || (wanted.right !== 'read' && wanted.right !== 'write')) return false;
      const question = questionFor({ ...wanted, right: 'read' });
      return wanted.right === 'read' || (question !== undefined && why(this.#started, question).outcome === 'denied');
    });
  }

  /** The session is about to run: its first process, what widens it, and how far that comes. */
  admit(pid: number | undefined, widening: Widening | undefined, extent: Extent): void {
    this.#control?.admit(pid);
    this.#book.extent = extent;
    if (widening !== undefined) this.#book.attach(this.#noting(widening));
  }

  /** What may be written is noted before it can be: also where the widening then fails, and for good. */
  #noting(widening: Widening): Widening {
    return {
      widen: async (grant) => {
        const { what, path, below } = grant;
        if (what === 'write') this.#reach.lets({ path, below });
        await widening.widen(grant);
      },
      narrow: (id) => widening.narrow(id),
    };
  }

  /** Hears what the supervisor tells the front of the session, too: which calls were done by a grant. */
  beside(front: Front): Front {
    return {
      judge: (question) => front.judge(question),
      heard: (event) => {
        if (event.rule?.kind === 'grant') this.#used(this.#book.performed(event.rule.index), event);
        front.heard(event);
      },
      dropped: (count) => front.dropped?.(count),
    };
  }

  /** Who uses a grant for a call and stands in the tree of a command whose call has ended: the supervisor lets it, and the record tells of it, once for each command. */
  #used(grant: Grant | undefined, { pid, path, program }: ObservedEvent): void {
    if (grant?.scope !== 'call') return;
    const owner = this.ownerOf(pid);
    if (owner?.call === undefined || this.calls.has(owner.call)) return;
    const key = `${grant.id} ${owner.command}`;
    if (this.#strangers.has(key)) return;
    this.#strangers.add(key);
    const data = { reason: 'grant used by another', id: grant.id, path, command: owner.command, pid, program };
    this.#record
      .note('alarm', { ...data, tool_use_id: owner.call }, `that ${grant.id} was used by another call’s command`)
      .catch(() => undefined);
  }

  /** An answer of the proxy. */
  answered(decision: EgressDecision): void {
    // That a name was answered for is not yet that its host was reached.
    if (decision.verdict === 'allow') {
      if (decision.via !== 'dns') this.#book.used(decision.source);
    } else if (this.calls.any) this.#refusals.host(decision);
  }

  /** A decision about a name. */
  decided(kind: string, { verdict, path, call, source }: Record<string, unknown>): void {
    const rule = (source ?? null) as Source | null;
    // What an agent's client does with its own state is no call of the model's.
    const isOfCall = this.calls.any && rule?.layer !== 'pack';
    if (isOfCall && kind === 'file' && verdict === 'deny' && typeof path === 'string')
      this.#refusals.name(path, String(call), rule);
  }

  /** What came through the door and is no hook; undefined for what is nothing of this. */
  asked(frame: Frame, peer: Peer, gone: Promise<void>): Promise<Answer | undefined> {
    return this.#asks.answer(frame, peer, gone);
  }

  /** A hook was answered: says which calls run, ends what was granted for one, and lets the answer tell the model what it met. */
  async hooked({ meta, payload }: Frame, answer: Answer, line: readonly Client[]): Promise<Answer> {
    this.spoke(line);
    if (payload.length > MOST_READ) return answer;
    const { kind, facts } = readHook(payload, { agent: meta.get('agent') ?? '', env: {} });
    const call = facts.toolUseId ?? '';
    if (kind === 'tool.before') {
      this.calls.began(call);
      this.#book.callBegan(call);
    }
    if (kind === 'turn.end') {
      this.calls.clear();
      this.#recheck();
    }
    if (kind !== 'tool.after' && kind !== 'tool.failed') return answer;
    this.calls.ended(call);
    if (this.#book.awaitsCall) await this.#book.callEnded(call).catch(() => undefined);
    if (this.#isAttached && speaksOfRefusal(payload)) this.#refusals.output(outputOf(payload));
    if (!this.#isAttached || answer.exit !== 0 || answer.stdout !== '') return answer;
    const additionalContext = this.#refusals.take();
    if (additionalContext === undefined) return answer;
    const hookSpecificOutput = { hookEventName: facts.event, additionalContext };
    return { ...answer, stdout: JSON.stringify({ hookSpecificOutput }) };
  }

  async close(): Promise<void> {
    this.#book.close();
    await this.#control?.close();
    if (this.#asks.turnedAway > 0)
      await this.#record.note(
        'alarm',
        { reason: 'requests turned away', count: this.#asks.turnedAway },
        'requests that were not taken',
      );
  }
}

/** What a call gave back, as text; of a call about one file its name too, since the error may not say it. */
function outputOf(payload: Buffer): string {
  let value: unknown;
  try {
    value = JSON.parse(payload.toString('utf8'));
  } catch {
    return '';
  }
  const { error, tool_response: response, tool_input: input } = objectOf(value);
  const { stdout, stderr } = objectOf(response);
  const said = [error, response, stdout, stderr].filter((text) => typeof text === 'string').join('\n');
  const file = objectOf(input)['file_path'];
  const [line = ''] = said.split('\n');
  return typeof file === 'string' && typeof error === 'string' ? `${line} '${file}'\n${said}` : said;
}

function objectOf(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
}
