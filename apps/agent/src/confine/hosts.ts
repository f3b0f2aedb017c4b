import type { EgressDecision } from '@nd7/egress';
import type { Tally } from './mediate.js';

/** So many different hosts are told apart. */
const MOST_HOSTS = 1_000;

/** What a session was refused by the proxy, counted for the summary at its end; the record has each answer. */
export class RefusedHosts {
  readonly #tallies = new Map<string, Tally>();

  add({ verdict, host, port, reason, source }: EgressDecision): void {
    if (verdict === 'allow') return;
    const path = port === null ? host : `${host}:${port}`;
    const rule = source?.text ?? `the proxy (${reason ?? 'refused'})`;
    const key = JSON.stringify([path, rule]);
    const known = this.#tallies.get(key);
    if (known !== undefined) known.count++;
    else if (this.#tallies.size < MOST_HOSTS)
      this.#tallies.set(key, { verdict: 'deny', rule, policy: source?.policy ?? null, count: 1, path, paths: 1 });
  }

  /** The most frequent first. */
  get tallies(): Tally[] {
    return [...this.#tallies.values()].sort((a, b) => b.count - a.count);
  }
}
