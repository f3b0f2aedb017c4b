import { pullTeamPolicy } from '@nd7/ship';

type Parts = Parameters<typeof pullTeamPolicy>[0];

/** Between two looks, milliseconds: a policy that was set holds everywhere within this time and a heartbeat's. */
const EVERY_MS = 600_000;

/** Fetches the team's policy beside the heartbeats: at the first and then every ten minutes. What goes wrong is told once, until it goes well. */
export class TeamPolicyWatch {
  #last = -Infinity;
  #told = '';

  constructor(
    private readonly parts: Parts,
    private readonly warn: (line: string) => void,
    private readonly everyMs = EVERY_MS,
  ) {}

  /** The vault has just answered. */
  look(): void {
    const now = performance.now();
    if (now - this.#last < this.everyMs) return;
    this.#last = now;
    pullTeamPolicy(this.parts).then(
      () => (this.#told = ''),
      (error: unknown) => {
        const text = error instanceof Error ? error.message : String(error);
        if (text !== this.#told) this.warn(`the team’s policy: ${text}`);
        this.#told = text;
      },
    );
  }
}
