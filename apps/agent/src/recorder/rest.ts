import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { releaseFreedMemory } from '@nd7/kernel';

/** Quiet for so long: what the work before needed is given back. */
const QUIET_MS = 5_000;
/** The collector frees buffers in a thread of its own, after it has answered. */
const FREED_MS = 500;
/** What is freed late is found by the next. */
const ROUNDS = 2;

/** Notices when a recorder comes to rest. One timer while there is work, none at rest. */
export class Rest {
  private timer: NodeJS.Timeout | undefined;

  /** Something is being done. */
  touch(): void {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.settle(), QUIET_MS).unref();
  }

  stop(): void {
    clearTimeout(this.timer);
  }

  private settle(rounds = ROUNDS): void {
    collectGarbage();
    this.timer = setTimeout(() => {
      releaseFreedMemory();
      if (rounds > 1) this.settle(rounds - 1);
    }, FREED_MS).unref();
  }
}

let collector: (() => void) | undefined;

/** A process that does nothing allocates nothing, and so nothing would ever start the collector: some 6 MB would stay for hours. */
function collectGarbage(): void {
  if (collector === undefined) {
    setFlagsFromString('--expose-gc');
    setFlagsFromString('--compact-on-every-full-gc');
    collector = runInNewContext('gc') as () => void;
  }
  collector();
}
