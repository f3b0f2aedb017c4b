import { MAX_DEPTH } from './grammar.js';
import { unescapeJson } from './json-string.js';
import { utf8Fault } from './utf8.js';

/** Why bytes are not strict JSON, in the order in which the faults are looked for. */
export type JsonFault = 'not-utf8' | 'bad-json' | 'duplicate-key';

/** One value of a parsed text. `start` and `end` are byte offsets: `bytes.subarray(start, end)` is the value as written. */
export interface JsonNode {
  type: 'object' | 'array' | 'string' | 'number' | 'true' | 'false' | 'null';
  start: number;
  end: number;
  /** Of an object, in the order written; keys unescaped. */
  members?: { key: string; value: JsonNode }[];
  /** Of an array. */
  items?: JsonNode[];
}

type Result = { ok: true; root: JsonNode } | { ok: false; reason: JsonFault; at: number };

/**
 * Reads one JSON text by RFC 8259 to the letter, and refuses a key that stands twice in an object: keys are equal when
 * their UTF-16 code units after unescaping are. Numbers are never evaluated. No recursion: depth is a limit, not a
 * stack. Time and memory are linear in the input, whatever it is. Never throws.
 *
 * A fault of encoding anywhere goes before one of grammar, and one of grammar anywhere before a doubled key.
 * `at` is the byte offset where the fault was noticed.
 */
export function parseStrictJson(bytes: Uint8Array, options: { maxDepth?: number; object?: boolean } = {}): Result {
  const at = utf8Fault(bytes);
  if (at >= 0) return { ok: false, reason: 'not-utf8', at };
  return new Parser(bytes, options.maxDepth ?? MAX_DEPTH, options.object ?? false).run();
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;
const COMMA = 0x2c;
const COLON = 0x3a;
const MINUS = 0x2d;
const PLUS = 0x2b;
const DOT = 0x2e;
const ZERO = 0x30;
const SIMPLE_ESCAPES = new Set([...'"\\/bfnrt'].map((c) => c.charCodeAt(0)));

/** Below this many keys a search through them is quicker than a set. */
const FEW_KEYS = 8;

interface Open {
  node: JsonNode;
  /** The key whose value is being read; in an object only. */
  key: string;
  /** Keys seen so far, once there are more than a few. */
  keys: Set<string> | undefined;
}

class Parser {
  private at = 0;
  private duplicate = -1;
  private readonly open: Open[] = [];

  constructor(
    private readonly bytes: Uint8Array,
    private readonly maxDepth: number,
    private readonly object: boolean,
  ) {}

  run(): Result {
    for (;;) {
      this.skipSpace();
      let node = this.startValue();
      if (node === undefined) return this.bad();
      if (node === 'opened') continue;
      // A value is complete: hand it to what encloses it, close what it closes, then read the next.
      for (;;) {
        const parent = this.open.at(-1);
        if (parent === undefined) return this.finish(node);
        attach(parent, node);
        this.skipSpace();
        const c = this.bytes[this.at];
        if (c === COMMA) {
          this.at++;
          if (parent.node.type === 'object' && !this.readKey(parent)) return this.bad();
          break;
        }
        if (c !== (parent.node.type === 'object' ? CLOSE_BRACE : CLOSE_BRACKET)) return this.bad();
        node = this.close();
      }
    }
  }

  private bad(): Result {
    return { ok: false, reason: 'bad-json', at: this.at };
  }

  private finish(root: JsonNode): Result {
    this.skipSpace();
    if (this.at !== this.bytes.length) return this.bad();
    if (this.object && root.type !== 'object') return { ok: false, reason: 'bad-json', at: root.start };
    if (this.duplicate >= 0) return { ok: false, reason: 'duplicate-key', at: this.duplicate };
    return { ok: true, root };
  }

  /** A scalar or an empty container, whole; or 'opened' where a container's first value comes next. */
  private startValue(): JsonNode | 'opened' | undefined {
    const start = this.at;
    switch (this.bytes[start]) {
      case OPEN_BRACE:
        return this.openContainer({ type: 'object', start, end: start, members: [] }, CLOSE_BRACE);
      case OPEN_BRACKET:
        return this.openContainer({ type: 'array', start, end: start, items: [] }, CLOSE_BRACKET);
      case QUOTE:
        return this.skipString() ? { type: 'string', start, end: this.at } : undefined;
      case 0x74:
        return this.literal('true');
      case 0x66:
        return this.literal('false');
      case 0x6e:
        return this.literal('null');
      default:
        return this.skipNumber() ? { type: 'number', start, end: this.at } : undefined;
    }
  }

  private openContainer(node: JsonNode, closer: number): JsonNode | 'opened' | undefined {
    if (this.open.length >= this.maxDepth) return undefined;
    const opened: Open = { node, key: '', keys: undefined };
    this.open.push(opened);
    this.at++;
    this.skipSpace();
    if (this.bytes[this.at] === closer) return this.close();
    if (node.type === 'object' && !this.readKey(opened)) return undefined;
    return 'opened';
  }

  private close(): JsonNode {
    const closed = this.open.pop() as Open;
    closed.node.end = ++this.at;
    return closed.node;
  }

  private readKey(parent: Open): boolean {
    this.skipSpace();
    const start = this.at;
    if (this.bytes[start] !== QUOTE || !this.skipString()) return false;
    const key = unescapeJson(this.bytes, start + 1, this.at - 1);
    if (this.duplicate < 0 && isDouble(parent, key)) this.duplicate = start;
    parent.key = key;
    this.skipSpace();
    if (this.bytes[this.at] !== COLON) return false;
    this.at++;
    return true;
  }

  private skipSpace(): void {
    for (;;) {
      const c = this.bytes[this.at];
      if (c !== 0x20 && c !== 0x09 && c !== 0x0a && c !== 0x0d) return;
      this.at++;
    }
  }

  private literal(type: 'true' | 'false' | 'null'): JsonNode | undefined {
    const start = this.at;
    for (let i = 0; i < type.length; i++, this.at++) if (this.bytes[this.at] !== type.charCodeAt(i)) return undefined;
    return { type, start, end: this.at };
  }

  /** From the opening quote to past the closing one; escapes checked, raw control characters refused. */
  private skipString(): boolean {
    const { bytes } = this;
    for (let i = this.at + 1; i < bytes.length; i++) {
      const c = bytes[i] as number;
      if (c === QUOTE) {
        this.at = i + 1;
        return true;
      }
      if (c < 0x20) return this.stop(i);
      if (c !== BACKSLASH) continue;
      const escape = bytes[++i];
      if (escape === 0x75) {
        for (let k = 1; k <= 4; k++) if (!isHexDigit(bytes[i + k])) return this.stop(i);
        i += 4;
      } else if (escape === undefined || !SIMPLE_ESCAPES.has(escape)) return this.stop(i);
    }
    return this.stop(bytes.length);
  }

  private stop(at: number): false {
    this.at = at;
    return false;
  }

  private skipNumber(): boolean {
    if (this.bytes[this.at] === MINUS) this.at++;
    if (this.bytes[this.at] === ZERO) this.at++;
    else if (!this.skipDigits()) return false;
    if (this.bytes[this.at] === DOT) {
      this.at++;
      if (!this.skipDigits()) return false;
    }
    const e = this.bytes[this.at];
    if (e === 0x65 || e === 0x45) {
      this.at++;
      const sign = this.bytes[this.at];
      if (sign === PLUS || sign === MINUS) this.at++;
      if (!this.skipDigits()) return false;
    }
    return true;
  }

  private skipDigits(): boolean {
    const start = this.at;
    for (;;) {
      const c = this.bytes[this.at];
      if (c === undefined || c < ZERO || c > 0x39) return this.at > start;
      this.at++;
    }
  }
}

function isHexDigit(c: number | undefined): boolean {
  if (c === undefined) return false;
  return (c >= 0x30 && c <= 0x39) || ((c | 0x20) >= 0x61 && (c | 0x20) <= 0x66);
}

function attach(parent: Open, value: JsonNode): void {
  if (parent.node.members !== undefined) parent.node.members.push({ key: parent.key, value });
  else parent.node.items?.push(value);
}

/** Whether the object already has this key. Called before the member is attached. */
function isDouble(parent: Open, key: string): boolean {
  const members = parent.node.members ?? [];
  if (members.length < FEW_KEYS) return members.some((m) => m.key === key);
  parent.keys ??= new Set(members.map((m) => unguessable(m.key)));
  const size = parent.keys.size;
  return parent.keys.add(unguessable(key)).size === size;
}

/**
 * Engines hash strings with a secret seed, but several versions of V8 not those that look like array indices: these are
 * hashed by their value, so that a sender could choose thousands that fall together and make the set quadratic. A
 * letter in front undoes it.
 */
function unguessable(key: string): string {
  const c = key.charCodeAt(0);
  return c >= 0x30 && c <= 0x39 ? `k${key}` : c === 0x6b ? `k${key}` : key;
}
