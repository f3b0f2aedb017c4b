import { Counter, Gauge, Histogram, type Registry } from 'prom-client';
import type { Round, Step } from './team-sequencer.js';

/**
 * Counters of the log's three states (sequenced: has an index; integrated: is in a tree; published: a signed checkpoint has it), how long a
 * batch takes from the database's point of view, and what holds a log up.
 */
export class LogMetrics {
  private readonly leaves: Counter<'state'>;
  private readonly checkpoints: Counter;
  private readonly seconds: Histogram;
  private readonly size: Gauge<'team'>;
  private readonly readOnly: Gauge<'team'>;
  private readonly failures: Counter<'why'>;
  private readonly began = new Map<string, { at: number; leaves: number }>();

  constructor(registry: Registry) {
    const registers = [registry];
    this.leaves = new Counter({
      name: 'nd7_log_leaves_total',
      help: 'Leaves, by the state they reached in this process',
      labelNames: ['state'],
      registers,
    });
    this.checkpoints = new Counter({
      name: 'nd7_log_checkpoints_total',
      help: 'Checkpoints published by this process',
      registers,
    });
    this.seconds = new Histogram({
      name: 'nd7_log_publish_seconds',
      help: 'From a batch integrated to its checkpoint published: commit, read back, sign, publish',
      buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5],
      registers,
    });
    this.size = new Gauge({
      name: 'nd7_log_size',
      help: 'Leaves in the newest checkpoint this process published',
      labelNames: ['team'],
      registers,
    });
    this.readOnly = new Gauge({
      name: 'nd7_log_read_only',
      help: '1 while the log takes nothing until a person has decided',
      labelNames: ['team'],
      registers,
    });
    this.failures = new Counter({
      name: 'nd7_log_rounds_failed_total',
      help: 'Rounds of the sequencer without a publication, by cause',
      labelNames: ['why'],
      registers,
    });
  }

  step(team: string, step: Step, { size, leaves }: { size: number; leaves: number }): void {
    if (step === 'inserted') this.began.set(team, { at: performance.now(), leaves });
    if (step === 'committed') for (const state of ['sequenced', 'integrated']) this.leaves.inc({ state }, leaves);
    if (step !== 'published') return;
    const began = this.began.get(team);
    this.began.delete(team);
    this.checkpoints.inc();
    this.size.set({ team }, size);
    if (began !== undefined) {
      this.leaves.inc({ state: 'published' }, began.leaves);
      this.seconds.observe((performance.now() - began.at) / 1000);
    }
  }

  round(team: string, round: Round): void {
    if (round.what === 'idle' || round.what === 'published') this.readOnly.set({ team }, 0);
    else this.failures.inc({ why: round.what });
    if (round.what === 'read-only') this.readOnly.set({ team }, 1);
  }

  failed(): void {
    this.failures.inc({ why: 'error' });
  }
}
