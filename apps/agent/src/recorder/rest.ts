import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { releaseFreedMemory } from '@nd7/kernel';

/** Quiet for so long: what the work before needed is given back. */
const QUIET_MS = 5_000;

/** Notices when a recorder comes to rest. One timer while there is work, none at rest. */
export class Rest {
  private timer: NodeJS.Timeout | undefined;

  /** Something is being done. */
  touch(): void {
    if (this.timer === undefined) this.timer = setTimeout(() => this.settle(), QUIET_MS).unref();
    else this.timer.refresh();
  }

  stop(): void {
    clearTimeout(this.timer);
  }

  private settle(): void {
    this.timer = undefined;
    collectGarbage();
    releaseFreedMemory();
  }
}

let collector: (() => void) | undefined;

/** A process that does nothing allocates nothing, and so nothing would ever start the collector: some 6 MB would stay for hours. */
function collectGarbage(): void {
  if (collector === undefined) {
    setFlagsFromString('--expose-gc');
    collector = runInNewContext('gc') as () => void;
  }
  collector();
}
