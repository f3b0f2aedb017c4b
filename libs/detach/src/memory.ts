/** A part of a string: `[start, end)` in UTF-16 units. */
export interface Range {
  start: number;
  end: number;
}

/** Shorter ones would be found in innocent text. */
const SHORTEST = 8;
const LONGEST = 4096;
/** All remembered secrets together, in characters. The oldest stay: they are the ones in use. */
const CAPACITY = 65_536;

interface Node {
  next: Map<number, Node>;
  /** Length of the longest secret that ends here, 0: none does. */
  length: number;
  fail: Node | undefined;
}

/**
 * The secrets that a session has shown so far: a value found once by its name or shape is found again wherever else it stands. One
 * Aho–Corasick automaton, so that a text costs its length whatever secrets are remembered. Lives in memory only; `recall` fills it again
 * from what was detached.
 */
export class SecretMemory {
  #root: Node = { next: new Map(), length: 0, fail: undefined };
  #stale = false;
  #room = CAPACITY;

  /** How much is remembered, in characters: it grows with each new secret. */
  get size(): number {
    return CAPACITY - this.#room;
  }

  /** Remembers a secret; too short or too long ones are not. */
  add(secret: string): void {
    if (secret.length < SHORTEST || secret.length > LONGEST || secret.length > this.#room) return;
    let node = this.#root;
    for (let i = 0; i < secret.length; i++) {
      const c = secret.charCodeAt(i);
      let next = node.next.get(c);
      if (!next) node.next.set(c, (next = { next: new Map(), length: 0, fail: undefined }));
      node = next;
    }
    if (node.length === secret.length) return;
    node.length = secret.length;
    this.#room -= secret.length;
    this.#stale = true;
  }

  /**
   * Remembers again what an earlier process detached: the parts of `value` (the JSON text of a string) that `shown` has `[secret]` for.
   * Returns how many; 0 where the two do not fit each other.
   */
  recall(value: string, shown: string): number {
    let text: unknown;
    try {
      text = JSON.parse(value);
    } catch {
      return 0;
    }
    if (typeof text !== 'string') return 0;
    const kept = shown.split('[secret]');
    const parts: string[] = [];
    let at = (kept[0] as string).length;
    if (kept.length < 2 || !text.startsWith(kept[0] as string)) return 0;
    for (const [i, piece] of kept.slice(1).entries()) {
      const last = i === kept.length - 2;
      const next = last ? text.length - piece.length : piece === '' ? -1 : text.indexOf(piece, at);
      if (next < at || !text.startsWith(piece, next)) return 0;
      parts.push(text.slice(at, next));
      at = next + piece.length;
    }
    for (const part of parts) this.add(part);
    return parts.length;
  }

  /** Where remembered secrets stand in a text; may overlap. */
  find(text: string): Range[] {
    const found: Range[] = [];
    if (this.size === 0) return found;
    if (this.#stale) this.#link();
    let node = this.#root;
    for (let i = 0; i < text.length; i++) {
      const c = text.charCodeAt(i);
      let next = node.next.get(c);
      while (!next && node.fail) {
        node = node.fail;
        next = node.next.get(c);
      }
      node = next ?? this.#root;
      if (node.length > 0) found.push({ start: i + 1 - node.length, end: i + 1 });
    }
    return found;
  }

  /** Breadth first: where to go on when a text leaves a secret in its middle. */
  #link(): void {
    let level: Node[] = [...this.#root.next.values()];
    for (const node of level) node.fail = this.#root;
    while (level.length > 0) {
      const below: Node[] = [];
      for (const node of level) {
        for (const [c, child] of node.next) {
          let fail = node.fail;
          while (fail && !fail.next.has(c)) fail = fail.fail;
          child.fail = fail?.next.get(c) ?? this.#root;
          // A secret that ends inside another ends here too; where both do, the longer was added here.
          if (child.length === 0) child.length = child.fail.length;
          below.push(child);
        }
      }
      level = below;
    }
    this.#stale = false;
  }
}
