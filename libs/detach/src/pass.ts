import type { Detached } from '@nd7/entry';
import { isAboutFile, type EnvScope } from './env-file.js';
import { DetachError } from './failure.js';
import { findSecrets, redact } from './find.js';
import type { SecretMemory } from './memory.js';
import { Pieces, type Mark } from './pieces.js';
import { elementCost, escapeToken, jsonLength, pointerOf, type Path } from './path.js';
import { scanJson, unquote } from './scan.js';

export interface PassSettings {
  scopes: readonly EnvScope[];
  /** Bytes of a value that may stay. */
  limit: number;
  /** Bytes of `data` and `detached` together. */
  budget: number;
  /** How deep containers may nest, the payload's own counted. */
  deepest: number;
  /** Policy pointers, split at their slashes. */
  pointers: readonly Pointer[];
  patterns: readonly string[];
  memory: SecretMemory;
}

type Pointer = readonly string[];

/** A value that is taken out: where it stood in the text, and what `detached` says of it. */
export interface Taken {
  start: number;
  end: number;
  bytes: number;
  why: Detached['why'];
  shown?: string;
}

/** `shown` is for reading a command; a longer one is left out. */
const SHOWN = 16_384;
/** A longer pointer names nothing that a person would read: the value above it is taken instead. */
const POINTER = 4_096;

/** What a value holds that must not leave: nothing, something a policy names, a secret. */
type Hold = 0 | 1 | 2;
const WHY = ['size', 'policy', 'secret'] as const;
const NOTHING: { hold: Hold; shown?: string } = { hold: 0 };

type TakenAt = Taken & { path: Path };

interface Value {
  /** Undefined: the payload itself. */
  path: Path | undefined;
  start: number;
  /** What of the lists is from before it. */
  mark: Mark;
  taken: number;
  /** Bytes of it that stay, and bytes that its taken values cost in `detached`. */
  kept: number;
  cost: number;
  hold: Hold;
}

/** A container that is open. */
interface Frame extends Value {
  object: boolean;
  byteStart: number;
  index: number;
  /** The present member's. */
  key: string;
  /** Policy pointers that lead into it, as much of them as is left. */
  pointers: readonly Pointer[];
}

/** A member of the payload itself, finished. */
interface Member {
  path: Path;
  key: string;
  text: string;
  taken: TakenAt[];
  start: number;
  end: number;
  bytes: number;
  cost: number;
  hold: Hold;
  gone: boolean;
}

/**
 * One reading of a payload. It decides bottom-up: when a container ends, what stays of it and what its taken values cost is known, and it is
 * taken whole where that is over the limit. As soon as that is certain, nothing of it is kept any more: memory is bounded by what may stay.
 */
export class Pass {
  readonly #text: string;
  readonly #o: PassSettings;
  #stack: Frame[] = [];
  #depth = 0;
  /** What stays of the payload's member that is being read. */
  #pieces: Pieces;
  #taken: TakenAt[] = [];
  #members: Member[] = [];
  /** Bytes of the payload's keys and of its members as they stand now. */
  #keys = 2;
  #total = 0;
  /** A value that is taken whole: until it ends, only secrets are looked for in it. */
  #skip: { depth: number; frame: Frame; why: Detached['why'] } | undefined;
  #whole: { hold: Hold; end: number; bytes: number } | undefined;
  #scope = 0;
  /** The payload's present key as it is written, and the key before the present value, if it has one. */
  #rawKey = '';
  #lastKey: string | undefined;

  constructor(text: string, settings: PassSettings) {
    this.#text = text;
    this.#o = settings;
    this.#pieces = new Pieces(text);
  }

  run(): { data: string; taken: (Taken & { at: string })[] } {
    scanJson(this.#text, {
      open: (object, at, extra) => this.#open(object, at, at + extra),
      close: (end, extra) => this.#close(end, end + extra),
      key: (start, end, extra) => this.#keyOf(start, end, end - start + extra),
      scalar: (start, end, before, extra) => this.#scalar(start, end, end + extra - (start + before)),
    });
    if (this.#whole) {
      const { hold, end, bytes } = this.#whole;
      const start = this.#text.indexOf('{');
      return { data: '{"payload":null}', taken: [{ at: '/payload', start, end, bytes, why: WHY[hold] }] };
    }
    const data = `{${this.#members.map((m) => `${m.key}:${m.gone ? 'null' : m.text}`).join(',')}}`;
    const taken = this.#members.flatMap((m) => (m.gone ? [{ ...m, why: WHY[m.hold] } as TakenAt] : m.taken));
    return {
      data,
      taken: taken.map((t) => ({
        at: pointerOf(t.path),
        start: t.start,
        end: t.end,
        bytes: t.bytes,
        why: t.why,
        ...(t.shown !== undefined && { shown: t.shown }),
      })),
    };
  }

  #open(object: boolean, at: number, byteAt: number): void {
    this.#depth++;
    this.#lastKey = undefined;
    if (this.#skip) return;
    const parent = this.#stack[this.#stack.length - 1];
    if (!parent && !object) throw new DetachError('bad-json', 'a payload is one JSON object');
    const path = parent && this.#lead(parent);
    const pointers = parent ? below(parent) : this.#o.pointers;
    const frame: Frame = {
      object,
      path,
      start: at,
      byteStart: byteAt,
      index: 0,
      key: '',
      mark: this.#pieces.mark(),
      taken: this.#taken.length,
      kept: 2,
      cost: 0,
      hold: 0,
      pointers,
    };
    if (parent && pointers.some((p) => p.length === 0)) this.#skipTo({ ...frame, hold: 1 }, 'policy');
    else if (parent && this.#depth > this.#o.deepest) this.#skipTo(frame, 'depth');
    else {
      this.#stack.push(frame);
      if (parent) this.#pieces.range(at, at + 1);
    }
  }

  #skipTo(frame: Frame, why: Detached['why']): void {
    this.#skip = { depth: this.#depth, frame, why };
  }

  #close(end: number, byteEnd: number): void {
    const depth = this.#depth--;
    if (this.#skip) {
      if (this.#skip.depth !== depth) return;
      const { frame, why } = this.#skip;
      this.#skip = undefined;
      const bytes = byteEnd - frame.byteStart;
      if (frame.path) this.#child(frame, end, bytes, frame.hold === 0 ? why : WHY[frame.hold]);
      else this.#whole = { hold: frame.hold, end, bytes };
      return;
    }
    const frame = this.#stack.pop() as Frame;
    const bytes = byteEnd - frame.byteStart;
    if (frame.path) {
      this.#pieces.range(end - 1, end);
      this.#child(frame, end, bytes);
    } else if (this.#total + this.#keys > this.#o.budget && !this.#shrink()) {
      this.#whole = { hold: frame.hold, end, bytes };
    }
  }

  #keyOf(start: number, end: number, bytes: number): void {
    const frame = this.#skip?.frame ?? (this.#stack[this.#stack.length - 1] as Frame);
    const raw = this.#text.slice(start, end);
    const key = unquote(raw);
    this.#lastKey = key;
    // A key cannot be detached: the object goes.
    const findings =
      key.length < 16 ? undefined : findSecrets(key, { patterns: this.#o.patterns, memory: this.#o.memory });
    const held = findings !== undefined && findings.ranges.length > 0;
    if (held) frame.hold = findings.secret ? 2 : worse(frame.hold, 1);
    if (this.#skip) return;
    frame.key = key;
    if (!frame.path) {
      this.#rawKey = raw;
      this.#keys += bytes + 2;
      if (held || this.#keys > this.#o.budget) this.#skipTo(frame, WHY[frame.hold]);
    } else if (held || bytes > POINTER) this.#drop(frame);
    else {
      if (frame.index > 0) this.#pieces.separator(0x2c);
      this.#pieces.range(start, end);
      frame.kept += bytes + 1;
    }
  }

  /** What stands before a value: its separator. Returns where the value stands. */
  #lead(parent: Frame): Path {
    const token = parent.object ? parent.key : String(parent.index);
    if (parent.path) {
      if (parent.object) this.#pieces.separator(0x3a);
      else if (parent.index > 0) this.#pieces.separator(0x2c);
      parent.kept++;
    }
    parent.index++;
    return { parent: parent.path, token, length: (parent.path?.length ?? 0) + 1 + jsonLength(token) };
  }

  #scalar(start: number, end: number, bytes: number): void {
    const string = this.#text.charCodeAt(start) === 0x22;
    const found = string ? this.#secrets(start, end, this.#lastKey) : NOTHING;
    this.#lastKey = undefined;
    if (this.#skip) {
      this.#skip.frame.hold = worse(this.#skip.frame.hold, found.hold);
      return;
    }
    const parent = this.#stack[this.#stack.length - 1];
    if (!parent) throw new DetachError('bad-json', 'a payload is one JSON object');
    const path = this.#lead(parent);
    const policy = below(parent).some((p) => p.length === 0);
    const hold = policy ? worse(found.hold, 1) : found.hold;
    const value = { path, start, mark: this.#pieces.mark(), taken: this.#taken.length, kept: bytes, cost: 0, hold };
    this.#pieces.range(start, end);
    this.#child(value, end, bytes, hold === 0 ? undefined : WHY[hold], policy ? undefined : found.shown);
  }

  #secrets(start: number, end: number, key: string | undefined): { hold: Hold; shown?: string } {
    const text = unquote(this.#text.slice(start, end));
    const env = this.#envAt(start, end);
    const { ranges, secret } = findSecrets(text, {
      ...(key !== undefined && { key }),
      ...(env && !(env === 'file' && key !== undefined && isAboutFile(key)) && { env }),
      patterns: this.#o.patterns,
      memory: this.#o.memory,
    });
    if (ranges.length === 0) return NOTHING;
    return { hold: secret ? 2 : 1, ...(text.length <= SHOWN && { shown: redact(text, ranges) }) };
  }

  /** The scopes do not overlap and are in order, and so are the questions. */
  #envAt(start: number, end: number): EnvScope['kind'] | undefined {
    const scopes = this.#o.scopes;
    while ((scopes[this.#scope]?.end ?? Infinity) < end) this.#scope++;
    const scope = scopes[this.#scope];
    return scope && scope.start <= start && end <= scope.end ? scope.kind : undefined;
  }

  /** A value has ended, with what stays of it written after `frame.mark`: keeps it or takes it (`why` given: in any case). */
  #child(value: Value, end: number, bytes: number, why?: Detached['why'], shown?: string): void {
    const path = value.path as Path;
    const parent = this.#stack[this.#stack.length - 1] as Frame;
    let { kept, cost } = value;
    const reason = why ?? (kept + cost > this.#o.limit ? WHY[value.hold] : undefined);
    if (reason !== undefined) {
      this.#pieces.cut(value.mark);
      this.#taken.length = value.taken;
      this.#pieces.null();
      this.#taken.push({ path, start: value.start, end, bytes, why: reason, ...(shown !== undefined && { shown }) });
      kept = 4;
      cost = elementCost(path, shown);
    }
    parent.hold = worse(parent.hold, value.hold);
    if (!parent.path) {
      this.#endMember(value, parent, end, bytes, kept + cost);
      return;
    }
    parent.kept += kept;
    parent.cost += cost;
    const unreadable = reason !== undefined && path.length > POINTER;
    if (unreadable || parent.kept + parent.cost > this.#o.limit) this.#drop(parent);
  }

  /** It is certain that this open container is taken: forgets what was kept of it. It is the innermost one. */
  #drop(frame: Frame): void {
    this.#pieces.cut(frame.mark);
    this.#taken.length = frame.taken;
    this.#stack.pop();
    this.#skip = { depth: this.#depth, frame, why: WHY[frame.hold] };
  }

  #endMember(value: Value, root: Frame, end: number, bytes: number, cost: number): void {
    this.#members.push({
      path: value.path as Path,
      key: this.#rawKey,
      text: this.#pieces.toString(),
      taken: this.#taken,
      start: value.start,
      end,
      bytes,
      cost,
      hold: value.hold,
      gone: false,
    });
    this.#pieces = new Pieces(this.#text);
    this.#taken = [];
    this.#total += cost;
    if (this.#total + this.#keys > 2 * this.#o.budget && !this.#shrink())
      this.#skipTo(this.#stack.pop() as Frame, WHY[root.hold]);
  }

  /** Takes the members that cost most until the rest fits; false when it cannot. */
  #shrink(): boolean {
    const order = this.#members
      .filter((m) => !m.gone && m.cost > elementCost(m.path) + 4)
      .sort((a, b) => b.cost - a.cost);
    for (const m of order) {
      if (this.#total + this.#keys <= this.#o.budget) break;
      const gone = elementCost(m.path) + 4;
      this.#total -= m.cost - gone;
      Object.assign(m, { gone: true, cost: gone, text: '', taken: [] });
    }
    return this.#total + this.#keys <= this.#o.budget;
  }
}

function worse(a: Hold, b: Hold): Hold {
  return a > b ? a : b;
}

/** The policy pointers of a container that lead on into its present child. */
function below(frame: Frame): Pointer[] {
  if (frame.pointers.length === 0) return [];
  const token = frame.object ? escapeToken(frame.key) : String(frame.index - 1);
  return frame.pointers.filter((p) => p[0] === token || p[0] === '*').map((p) => p.slice(1));
}
