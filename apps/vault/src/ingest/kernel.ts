import { createKernel, type LineKernel } from '@nd7/blake3';

/**
 * A thread's line kernel, for one user at a time: it is not re-entrant, and a walk waits in the middle for its signatures. Hashing is the
 * processor's work, so taking turns costs nothing.
 */
export class Kernel {
  private readonly kernel = createKernel();
  /** The end of the queue; written by `use` only. */
  private last: Promise<unknown> = Promise.resolve();

  use<T>(work: (kernel: LineKernel) => T | Promise<T>): Promise<T> {
    const turn = this.last.then(() => work(this.kernel));
    this.last = turn.catch(() => undefined);
    return turn;
  }
}
