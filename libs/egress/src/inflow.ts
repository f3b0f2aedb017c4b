import type { OnReadOpts, Socket } from 'node:net';

/** What a connection reads into at first, and at most: small answers need no more, large ones make it grow. */
const [LEAST, MOST] = [16 << 10, 256 << 10];

/**
 * What a server sends, on its way to a program: read into one buffer and written from it, in place of a new one for each piece, of which a
 * large body makes thousands that somebody has to collect. Nothing is read before the last piece has left the buffer.
 */
export class Inflow {
  /** For the options of the connection that is read from. */
  readonly onread: OnReadOpts;
  #buffer = Buffer.allocUnsafeSlow(LEAST);
  #isFull = false;
  #isWaiting = false;
  /** What came before anybody was there to take it. */
  #held: Buffer | undefined;
  #from: Socket | undefined;
  #to: Socket | undefined;

  constructor() {
    this.onread = {
      buffer: () => {
        // A buffer that is still being written from stays as it is.
        if (this.#isFull && !this.#isWaiting && this.#buffer.length < MOST)
          this.#buffer = Buffer.allocUnsafeSlow(this.#buffer.length * 4);
        this.#isFull = false;
        return this.#buffer;
      },
      callback: (length, buffer) => this.#take(Buffer.from(buffer.buffer, buffer.byteOffset, length)),
    };
  }

  /** Passes on what comes; both ends are joined besides for errors and their end. */
  join(from: Socket, to: Socket): void {
    this.#from = from;
    this.#to = to;
    from.once('end', () => to.end());
    const held = this.#held;
    this.#held = undefined;
    if (held === undefined || this.#write(held)) from.resume();
  }

  /** Whether more may be read at once. */
  #take(bytes: Buffer): boolean {
    this.#isFull = bytes.length === this.#buffer.length;
    if (this.#to !== undefined) return this.#write(bytes);
    this.#held = Buffer.from(bytes);
    return false;
  }

  #write(bytes: Buffer): boolean {
    const to = this.#to as Socket;
    to.write(bytes, () => {
      if (!this.#isWaiting) return;
      this.#isWaiting = false;
      this.#from?.resume();
    });
    // What is not in the kernel's hands yet is in ours.
    this.#isWaiting = to.writableLength > 0;
    return !this.#isWaiting;
  }
}
