// Which tool calls of a session's agents run at this moment, as their hooks say.

/** More at once are no agent's. */
const MOST_OPEN = 1_000;

export class OpenCalls {
  readonly #open = new Set<string>();

  began(call: string): void {
    const [oldest] = this.#open;
    if (this.#open.size >= MOST_OPEN && oldest !== undefined) this.#open.delete(oldest);
    this.#open.add(call);
  }

  ended(call: string): void {
    this.#open.delete(call);
  }

  /** The agent has said its last for now: calls of which no end was told have ended. */
  clear(): void {
    this.#open.clear();
  }

  has(call: string): boolean {
    return this.#open.has(call);
  }

  get any(): boolean {
    return this.#open.size > 0;
  }

  /** The one that runs, where it is exactly one. */
  get only(): string | undefined {
    const [call] = this.#open;
    return this.#open.size === 1 ? call : undefined;
  }
}
