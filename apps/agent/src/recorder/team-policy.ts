import { isShipError, pullTeamPolicy, type PullParts } from '@nd7/ship';

/** Between two looks, milliseconds: a policy that was set holds everywhere within this time and a heartbeat's. */
const EVERY_MS = 600_000;

/** Who is told of what is found. */
export interface Told {
  warn(line: string): void;
  /** Writes an alarm into the sessions that are open; false where none is. */
  alarm(data: Record<string, unknown>): Promise<boolean>;
}

/**
 * Fetches the team's policy beside the heartbeats: at the first and then every ten minutes. A newer one and what goes wrong are told once, what goes wrong until it goes well;
 * that the vault has signed two of one version is an alarm of the sessions that are open, or of the first ones that are.
 */
export class TeamPolicyWatch {
  #last = -Infinity;
  #told = '';
  #alarmed = '';

  constructor(
    private readonly parts: PullParts,
    private readonly told: Told,
    private readonly everyMs = EVERY_MS,
  ) {}

  /** The vault has just answered. */
  look(): void {
    const now = performance.now();
    if (now - this.#last < this.everyMs) return;
    this.#last = now;
    void this.#pull();
  }

  async #pull(): Promise<void> {
    try {
      const { version, changed } = await pullTeamPolicy(this.parts);
      if (changed) this.told.warn(`version ${String(version)} of the team’s policy holds from the next session on`);
      this.#told = '';
    } catch (error) {
      const text = error instanceof Error ? error.message : String(error);
      if (text !== this.#told) this.told.warn(`the team’s policy: ${text}`);
      this.#told = text;
      if (!isShipError(error) || error.code !== 'two-policies' || text === this.#alarmed) return;
      const isWritten = await this.told.alarm({ reason: error.code, detail: text }).catch(() => false);
      if (isWritten) this.#alarmed = text;
    }
  }
}
