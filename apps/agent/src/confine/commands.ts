import { readFileSync } from 'node:fs';
import { blake3Hex } from '@nd7/blake3';
import type { AskedCommand, CommandAnswer, CommandEnd, CommandFront } from '@nd7/confine';
import { processFacts } from '@nd7/kernel';
import { lineage } from '../recorder/inside.js';
import type { Client } from '../recorder/peer.js';
import { commandEnvironment } from './command-environment.js';
import { SpokenCommands } from './spoken-commands.js';
import type { RunRecord } from './record.js';

/** Entries about commands: a layer outside the agent ran them and saw how they ended. */
const SOURCE = 'effect:exec-broker';
/** So long a command is known of which nothing is left, and at most so many. */
const PAST_MS = 2_000;
const MOST_PAST = 1_000;
/** So long is waited for the word that a command has begun. */
const BEGIN_MS = 500;
/** So many refusals are told one by one. */
const MAX_TOLD = 20;

export interface CommandsInput {
  record: Pick<RunRecord, 'note'>;
  /** The shell that the agent would have used, and what it takes for it. */
  shell: string;
  stub: string;
  /** What the agent's process was given. */
  environment: Readonly<Record<string, string>>;
  /** Whether a text runs by the broker too that no hook has announced. */
  takesUnannounced: boolean;
  warn(text: string): void;
  /** Whether something is granted that the session cannot read by itself: commands that begin now can. */
  readsMore(): boolean;
  /** The policy requires a record, and one could not be written. */
  unrecorded(error: unknown): void;
}

interface Running {
  name: string;
  call: string | undefined;
  since: number;
  keeper?: number;
  /** When the keeper began: a number may come round. */
  keeperStart?: string | undefined;
  shell?: number;
  /** Until when a command is known of which nothing is left: what its processes did may be heard of later. */
  until?: number;
}

/** A command by its name in the session's chain, and the agent's call that it is of, where that is known. */
export interface Owner {
  command: string;
  call: string | undefined;
}

/**
 * Decides about the commands that an agent gives away to be run, and records what was run. Who asks is the kernel's word; of what it says only
 * the text is taken. A command gets no more than the session's rules: it is run by the session's zygote.
 */
export class Commands implements CommandFront {
  readonly #spoken = new SpokenCommands();
  readonly #running = new Map<number, Running>();
  readonly #past: Running[] = [];
  /** Those who wait for a command to begin. */
  readonly #awaiting = new Set<() => void>();
  #first: Client | undefined;
  #count = 0;
  #refused = 0;
  /** What has ended. Both end with the session too: it matters when the next command comes. */
  #lost: 'zygote' | 'broker' | undefined;
  #isToldLost = false;

  constructor(private readonly input: CommandsInput) {}

  /** From now on those are heard that stand below the session's first process. */
  admit(pid: number | undefined): void {
    const facts = pid === undefined ? undefined : processFacts(pid);
    this.#first = facts && { pid: facts.pid, start: facts.start };
  }

  /** The payload of a hook from inside: what the agent says that it will run, and that it has. */
  hears(payload: Uint8Array): void {
    const heard = this.#spoken.hear(payload);
    if (heard === 'announced') this.#tellLost();
    // Before it ended nothing of that text was given away: it ran under the session's rules, seen by nobody.
    else if (heard !== undefined && !this.#isToldLost) {
      const data = { reason: 'command not seen', call: heard.unseen };
      this.#note('recorder:nd7', 'alarm', data, 'a command that was not seen');
    }
  }

  async asked(command: AskedCommand): Promise<CommandAnswer> {
    const from = this.#first && lineage(command.pid, this.#first);
    const caller = from?.[0] === undefined ? undefined : callerOf(from[0]);
    if (from === undefined) {
      this.#refuse(command, 'who asked is not inside');
      return { verdict: 'refuse', reason: 'who asked is not inside this session' };
    }
    this.#tellLost();
    // It has gone already, or shows itself to nobody; or nobody is there to run it.
    if (caller === undefined || this.#isToldLost) return { verdict: 'direct' };
    if (!this.input.takesUnannounced && !this.#spoken.isAnnounced(command.text.toString('utf8')))
      return { verdict: 'direct' };
    const { shell, stub, environment } = this.input;
    const given = commandEnvironment(caller.environment, environment, { stub, shell });
    try {
      const running = await this.#began(command, 'broker', { by: from[0], leftOut: given.leftOut });
      this.#running.set(command.id, running);
    } catch (error) {
      this.input.unrecorded(error);
      return { verdict: 'refuse', reason: 'it cannot be recorded, and the policy requires it' };
    }
    const argv = [shell, ...(command.login ? ['-l'] : []), '-c', command.text];
    return {
      verdict: 'run',
      readsMore: this.input.readsMore(),
      order: {
        program: shell,
        argv,
        environment: given.environment,
        folder: caller.pid,
        umask: caller.umask,
        ignored: caller.ignored,
      },
    };
  }

  told(command: AskedCommand): void {
    if (this.#first !== undefined && lineage(command.pid, this.#first) !== undefined)
      void this.#began(command, 'itself', { by: processFacts(command.pid), leftOut: [] }).catch(this.input.unrecorded);
  }

  began(id: number, keeper: number, shell: number): void {
    const running = this.#running.get(id);
    if (running !== undefined) Object.assign(running, { keeper, keeperStart: processFacts(keeper)?.start, shell });
    this.#wake();
  }

  ended(id: number, end: CommandEnd): void {
    const running = this.#running.get(id);
    if (running === undefined) return;
    const { code, signal, isLost, ...used } = end;
    const ms = Math.round(performance.now() - running.since);
    const { name, call, keeper, shell } = running;
    const of = call === undefined ? {} : { tool_use_id: call };
    const end_ = { code, signal, ms, ...(isLost ? { lost: true } : { used }) };
    const data = { command: name, ...of, pid: shell, tree: keeper, ...end_ };
    this.#note(SOURCE, 'exec.end', data, 'how a command ended');
  }

  gone(id: number): void {
    const running = this.#running.get(id);
    this.#running.delete(id);
    if (running?.keeper !== undefined) this.#past.push({ ...running, until: performance.now() + PAST_MS });
    this.#wake();
  }

  /** The command in whose tree a process stands at this moment, by its keeper; undefined for what is below none, and for what has gone. */
  ownerOf(pid: number): Owner | undefined {
    return this.#ownerIn((this.#first && lineage(pid, this.#first)) ?? []);
  }

  /**
   * The command in whose tree a process stood when it was seen with those above it; undefined for what was below none. What stands below a keeper does as
   * long as that lives: whoever loses its parents becomes the keeper's own.
   */
  async ownerIn(line: readonly Client[]): Promise<Owner | undefined> {
    const until = performance.now() + BEGIN_MS;
    for (;;) {
      const owner = this.#ownerIn(line);
      const left = until - performance.now();
      // A command may be seen before it is told that it has begun: the two come by two ways.
      const isToCome = [...this.#running.values()].some(({ keeper }) => keeper === undefined);
      if (owner !== undefined || !isToCome || left <= 0) return owner;
      await new Promise<void>((done) => {
        const woken = (): void => {
          clearTimeout(timer);
          this.#awaiting.delete(woken);
          done();
        };
        const timer = setTimeout(woken, left);
        this.#awaiting.add(woken);
      });
    }
  }

  #ownerIn(line: readonly Client[]): Owner | undefined {
    const now = performance.now();
    while ((this.#past[0]?.until ?? now) < now || this.#past.length > MOST_PAST) this.#past.shift();
    const isKeeper = ({ keeper, keeperStart }: Running): boolean =>
      keeperStart !== undefined && line.some(({ pid, start }) => pid === keeper && start === keeperStart);
    const found = [...this.#running.values()].find(isKeeper) ?? this.#past.find(isKeeper);
    return found && { command: found.name, call: found.call };
  }

  #wake(): void {
    for (const woken of [...this.#awaiting]) woken();
  }

  handedBack(id: number): void {
    const running = this.#running.get(id);
    this.#running.delete(id);
    this.#wake();
    if (running !== undefined)
      this.#note(SOURCE, 'exec.end', { command: running.name, direct: true }, 'that a command runs by itself');
  }

  refused(pid: number, uid: number, why: 'no request' | 'too many'): void {
    this.#refuse({ pid, uid }, why === 'no request' ? 'what was said is no request' : 'too many commands at once');
  }

  lost(what: 'zygote' | 'broker'): void {
    this.#lost ??= what;
  }

  /** The program has ended, and what runs with it. */
  async over(): Promise<void> {
    if (this.#refused > MAX_TOLD)
      await this.input.record.note(
        'alarm',
        { reason: 'broker refused', count: this.#refused },
        'refusals of the broker',
      );
  }

  async #began(
    { text, login, terminal }: AskedCommand,
    how: 'broker' | 'itself',
    { by, leftOut }: { by: { pid: number; start: string } | undefined; leftOut: string[] },
  ): Promise<Running> {
    const spoken = this.#spoken.match(text.toString('utf8'));
    const running: Running = { name: `c-${++this.#count}`, call: spoken?.call, since: performance.now() };
    const data = {
      command: running.name,
      how,
      ...(spoken === undefined ? {} : { tool_use_id: spoken.call, session: spoken.session, tied: spoken.by }),
      // The text itself stands in the intent, where what is secret in it is kept apart.
      text: { blake3: blake3Hex(text), bytes: text.length },
      by: by && { pid: by.pid, start: by.start },
      ...(login ? { login } : {}),
      ...(terminal ? { terminal } : {}),
      ...(leftOut.length > 0 ? { left_out: leftOut } : {}),
    };
    await this.input.record.note('exec', data, 'that a command begins', SOURCE, undefined, { sync: 'soon' });
    return running;
  }

  #tellLost(): void {
    const what = this.#lost;
    if (what === undefined || this.#isToldLost) return;
    this.#isToldLost = true;
    this.input.warn(
      `commands of this session are not seen any more: nd7’s ${what} has ended. They run inside the boundary all the same.`,
    );
    this.#note('recorder:nd7', 'alarm', { reason: 'no broker', detail: `the ${what} has ended` }, 'the broker’s end');
  }

  #refuse({ pid, uid }: { pid: number; uid: number }, detail: string): void {
    if (++this.#refused <= MAX_TOLD)
      this.#note('recorder:nd7', 'alarm', { reason: 'broker refused', detail, by: { pid, uid } }, 'a refusal');
  }

  #note(source: string, kind: string, data: Record<string, unknown>, what: string): void {
    this.input.record.note(kind, data, what, source, undefined, { sync: 'soon' }).catch(this.input.unrecorded);
  }
}

interface Caller {
  /** As it is called inside. */
  pid: number;
  umask: number;
  ignored: bigint;
  environment: Buffer;
}

/** What the kernel says of a process inside (proc(5)); undefined where it has gone, also where its pid is somebody else's by now: then all of it may be that one's. */
function callerOf({ pid, start }: Client): Caller | undefined {
  try {
    const status = readFileSync(`/proc/${pid}/status`, 'latin1');
    const field = (name: string): string => new RegExp(`^${name}:\\s*(.*)$`, 'm').exec(status)?.[1] ?? '';
    const inside = Number(/(\d+)$/.exec(field('NSpid'))?.[1]);
    const umask = Number.parseInt(field('Umask'), 8);
    if (!(inside > 0) || !(umask >= 0)) return undefined;
    const environment = readFileSync(`/proc/${pid}/environ`);
    if (processFacts(pid)?.start !== start) return undefined;
    return { pid: inside, umask, ignored: BigInt(`0x${field('SigIgn') || '0'}`), environment };
  } catch {
    return undefined;
  }
}
