import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/** Somebody who works starts the next session within it, and finds what was made for the last one. */
const QUIET_MS = 20_000;

/** What a host does when nobody waits for it. */
export class Chores {
  #work: (() => void)[] = [];
  #timer: NodeJS.Timeout | undefined;

  /** Does it when there has been no session for a while, and at the end of the host. */
  later(work: () => void): void {
    this.#work.push(work);
  }

  /** A session begins: nothing is done meanwhile. */
  pause(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  /** A session has ended. */
  resume(): void {
    collect();
    this.pause();
    if (this.#work.length > 0) this.#timer = setTimeout(() => this.finish(), QUIET_MS).unref();
  }

  /** Does all of it now. */
  finish(): void {
    this.pause();
    for (const work of this.#work.splice(0)) work();
  }
}

/** Takes away what the last session has left in memory, so that the next one does not stop for it. */
function collect(): void {
  gc ??= exposedGc();
  gc({ type: 'minor' });
}

let gc: ((options: { type: 'minor' }) => void) | undefined;

/** Node has it behind a flag, which may be set while it runs. */
function exposedGc(): NonNullable<typeof gc> {
  setFlagsFromString('--expose-gc');
  const exposed = runInNewContext('gc') as NonNullable<typeof gc>;
  setFlagsFromString('--no-expose-gc');
  return exposed;
}
