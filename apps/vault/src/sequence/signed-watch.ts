import type { CheckpointSigner, TreeHead } from '../signer/signer.js';
import { LogError } from './log-error.js';

/** How long an answer of the signer counts, in milliseconds. */
const FRESH = 1000;
/** Whoever asks holds a database connection: so long (ms) is waited for a signer that does not answer. */
const PATIENCE = 500;

/**
 * What the signer signed last, for those who are about to write: everything signed was committed before, so a database that does not hold
 * it has lost the past. Asked for at most once a second and log; while the signer cannot be reached the last answer counts.
 */
export class SignedWatch {
  private readonly known = new Map<string, { head: TreeHead; at: number }>();
  private readonly asking = new Map<string, Promise<TreeHead | undefined>>();

  constructor(private readonly signer: CheckpointSigner) {}

  /** Undefined when nobody knows. Throws LogError `log-read-only` when the signer has lost its own state. */
  head(origin: string): Promise<TreeHead | undefined> {
    const known = this.known.get(origin);
    if (known !== undefined && performance.now() - known.at < FRESH) return Promise.resolve(known.head);
    const asking = this.asking.get(origin) ?? this.ask(origin).finally(() => this.asking.delete(origin));
    this.asking.set(origin, asking);
    return asking;
  }

  private async ask(origin: string): Promise<TreeHead | undefined> {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<undefined>((resolve) => {
      timer = setTimeout(() => {
        resolve(undefined);
      }, PATIENCE);
    });
    const state = await Promise.race([this.signer.state(origin).catch(() => undefined), late]);
    clearTimeout(timer);
    if (state?.ok === true) {
      this.known.set(origin, { head: state.last, at: performance.now() });
      return state.last;
    }
    if (state?.refusal === 'no-state')
      throw new LogError('log-read-only', `log ${origin} is read-only: ${state.message}`);
    return this.known.get(origin)?.head;
  }
}
