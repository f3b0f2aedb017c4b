import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { processFacts } from '@nd7/kernel';
import { Transcript } from './transcript.js';

/** How long a call may stand in a transcript before a hook must have told of it, and hooks may be quiet before programs that end count. */
const GRACE_MS = 15_000;
/** So many looks at which programs had ended: one alone may be a hook's own, or a server that stopped. */
const ENOUGH = 3;
/** Transcripts of so many subagents are followed. */
const MAX_SUBAGENTS = 1024;

/** What a look at the transcripts gave. */
export interface TranscriptLook {
  /** Calls that no hook told of in time. */
  silent: string[];
  /** Whether the client seems to write a transcript at all. */
  hasTranscript: boolean;
}

/**
 * Reads what a client's own transcripts grew by, its subagents' beside it, and finds the tool calls that no hook told of: the hooks are silent
 * while tools go on. One per session.
 */
export class SilenceWatch {
  private readonly transcripts = new Map<string, Transcript>();
  private readonly pending = new Map<string, number>();
  private hasLooked = false;

  /** `began`: when this session was opened here, ms. */
  constructor(private readonly began: number) {}

  /**
   * Call ids that have stood in a transcript for GRACE_MS (at the session's end: at all) without a hook; each is given once. The first look
   * notes where the transcripts end.
   */
  look(path: string | undefined, told: ReadonlySet<string>, now: number, isLast = false): TranscriptLook {
    if (path === undefined) return { silent: [], hasTranscript: false };
    const main = this.grown(path, false, isLast);
    const ids = [...(main ?? []), ...subagentsOf(path).flatMap((one) => this.grown(one, this.hasLooked, isLast) ?? [])];
    this.hasLooked = true;
    for (const id of ids) if (!told.has(id) && !this.pending.has(id)) this.pending.set(id, now);
    const silent: string[] = [];
    for (const [id, since] of this.pending) {
      if (told.has(id)) this.pending.delete(id);
      else if (since !== Infinity && (isLast || now - since >= GRACE_MS)) {
        silent.push(id);
        this.pending.set(id, Infinity);
      }
    }
    return { silent, hasTranscript: main !== undefined };
  }

  private grown(path: string, fromStart: boolean, isLast: boolean): string[] | undefined {
    let transcript = this.transcripts.get(path);
    if (transcript === undefined) {
      if (this.transcripts.size > MAX_SUBAGENTS) return [];
      this.transcripts.set(path, (transcript = new Transcript(path, this.began, fromStart)));
    }
    return transcript.grown(isLast);
  }
}

/** Claude Code writes a subagent's transcript to `<session>/subagents/agent-<id>.jsonl` beside the session's, a workflow's one folder further down. */
function subagentsOf(path: string): string[] {
  const folder = join(path.replace(/\.jsonl$/, ''), 'subagents');
  try {
    return readdirSync(folder, { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.jsonl'))
      .map((name) => join(folder, name));
  } catch {
    return [];
  }
}

/**
 * Notices a client whose programs go on while its hooks are silent, by its process alone: for clients without a transcript. Every hook is a program
 * that the client starts and waits for, and so is every command of its shell tool; one that sits idle starts none (measured with 2.1.332).
 */
export class ProcessWatch {
  private faults: number | undefined;
  private heard = 0;
  private looks = 0;
  private since = 0;
  private isTold = false;

  /**
   * When the programs began that have ended while no hook spoke, ms, once there are enough of them; told once per silence. `heard`: when a hook of
   * this client spoke last, ms.
   */
  look(client: { pid: number; start: string }, heard: number, now: number): number | undefined {
    const facts = processFacts(client.pid);
    if (facts?.childFaults === undefined || facts.start !== client.start) return undefined;
    const hasGrown = this.faults !== undefined && facts.childFaults > this.faults;
    this.faults = facts.childFaults;
    if (heard !== this.heard || now - heard < GRACE_MS) {
      [this.heard, this.looks, this.isTold] = [heard, 0, false];
      return undefined;
    }
    if (!hasGrown || this.isTold) return undefined;
    if (this.looks++ === 0) this.since = now;
    this.isTold = this.looks >= ENOUGH;
    return this.isTold ? this.since : undefined;
  }
}
