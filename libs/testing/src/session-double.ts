import { blake3Hex } from '@nd7/blake3';
import { certMessage, genesis, sealMessage } from '@nd7/chain';
import { formatTime, printEntry, toHex, utf8 } from '@nd7/entry';
import { generateKeyPair, type KeyPair } from '@nd7/signing';

/** A session's log in memory, real in every byte: certified first key, links, seals. It stands in for the journal where a test ships or verifies. */
export class SessionDouble {
  readonly lines: Uint8Array[] = [];
  /** The link that the next entry must carry. */
  head: string;
  #key: KeyPair = generateKeyPair();
  #time = Date.UTC(2026, 10, 29, 19, 41);

  constructor(
    readonly machine: KeyPair,
    readonly session: string,
  ) {
    this.head = genesis(session);
    const key = this.#key.publicKey;
    const cert = toHex(machine.sign(certMessage(session, key)));
    this.add('recorder:nd7', 'session.start', { machine: machine.publicKey, key, cert });
  }

  /** Appends one entry. */
  add(source: string, kind: string, data: Record<string, unknown>): this {
    const line = printEntry(this.lines.length, this.head, {
      time: formatTime(this.#time++),
      source,
      kind,
      data: JSON.stringify(data),
    });
    this.head = blake3Hex(line);
    this.lines.push(new Uint8Array([...line, 10]));
    return this;
  }

  /** Appends so many prompts, each of about so many bytes. */
  prompts(count: number, bytes = 20): this {
    for (let i = 0; i < count; i++)
      this.add('intent:claude-code', 'prompt', { prompt: `${String(this.lines.length)} ${'x'.repeat(bytes)}` });
    return this;
  }

  /** Ends the log with a seal, where the last entry is none. */
  seal(): Promise<{ entries: number; head: string }> {
    if (!this.isSealed) {
      const next = generateKeyPair();
      const sig = toHex(this.#key.sign(sealMessage(this.session, this.lines.length, this.head, next.publicKey)));
      this.add('recorder:nd7', 'seal', { next: next.publicKey, sig });
      this.#key = next;
    }
    return Promise.resolve({ entries: this.lines.length, head: this.head });
  }

  get isSealed(): boolean {
    return new TextDecoder().decode(this.lines.at(-1)).includes('"kind":"seal"');
  }

  entries(): number {
    return this.lines.length;
  }

  range(from: number, to: number): Uint8Array {
    if (from < 0 || to < from || to > this.lines.length)
      throw new RangeError(`entries ${String(from)} to ${String(to)} of ${String(this.lines.length)}`);
    return new Uint8Array(Buffer.concat(this.lines.slice(from, to)));
  }

  /** The same session told otherwise from entry `at` on, with the machine's own key: what a forger who owns the machine can write. */
  rewritten(at: number): SessionDouble {
    const forged = new SessionDouble(this.machine, this.session);
    for (const [seq, line] of this.lines.entries()) {
      if (seq === 0) continue;
      const text = new TextDecoder().decode(line);
      const { source, kind, data } = JSON.parse(text) as {
        source: string;
        kind: string;
        data: Record<string, unknown>;
      };
      if (kind === 'seal') void forged.seal();
      else forged.add(source, kind, seq < at ? data : { ...data, forged: true });
    }
    return forged;
  }

  /** What `change` makes of one line's text, links left as they are. */
  edit(seq: number, change: (text: string) => string): void {
    this.lines[seq] = utf8(change(new TextDecoder().decode(this.lines[seq])));
  }
}
