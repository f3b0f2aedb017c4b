/** Chunks that arrive as messages, read as a stream. */
export class Inbox implements AsyncIterable<Uint8Array> {
  readonly #chunks: Uint8Array[] = [];
  #ended = false;
  #stopped = false;
  #wake: (() => void) | undefined;
  readonly #onTaken: (bytes: number) => void;

  /** `onTaken` hears of each chunk when the reader has finished with it: the sender's leave to send more. */
  constructor(onTaken: (bytes: number) => void) {
    this.#onTaken = onTaken;
  }

  push(chunk: Uint8Array): void {
    this.#chunks.push(chunk);
    this.#wake?.();
  }

  end(): void {
    this.#ended = true;
    this.#wake?.();
  }

  /** Makes the reader throw: nobody waits for its verdict any more. */
  stop(): void {
    this.#stopped = true;
    this.#wake?.();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array> {
    for (;;) {
      if (this.#stopped) throw new Error('stopped');
      const chunk = this.#chunks.shift();
      if (chunk !== undefined) {
        yield chunk;
        this.#onTaken(chunk.length);
      } else if (this.#ended) return;
      else await new Promise<void>((resolve) => (this.#wake = resolve));
    }
  }
}
