import { Injectable } from '@nestjs/common';
import { Counter, Gauge, Histogram, Registry, collectDefaultMetrics } from 'prom-client';

const CLASSES = ['intent', 'effect', 'decision', 'recorder', 'unclassified'] as const;

/** What the service counts, in the words of the glossary. No label carries an id of a session, a machine or a person. */
@Injectable()
export class Metrics {
  readonly registry = new Registry();
  readonly entries = new Counter({
    name: 'nd7_entries_total',
    help: 'Entries taken',
    labelNames: ['class'],
    registers: [this.registry],
  });
  readonly segments = new Counter({
    name: 'nd7_segments_total',
    help: 'Segments shipped here, by answer',
    labelNames: ['answer'],
    registers: [this.registry],
  });
  readonly bytes = new Counter({
    name: 'nd7_segment_bytes_total',
    help: 'Bytes of entries taken, decompressed',
    registers: [this.registry],
  });
  readonly ingestSeconds = new Histogram({
    name: 'nd7_ingest_seconds',
    help: 'From a segment’s body read to its commit',
    buckets: [0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5],
    registers: [this.registry],
  });
  readonly receiptSeconds = new Histogram({
    name: 'nd7_receipt_seconds',
    help: 'From a segment’s commit to its published receipt',
    buckets: [0.05, 0.1, 0.2, 0.3, 0.5, 0.75, 1, 2, 5],
    registers: [this.registry],
  });
  readonly requests = new Counter({
    name: 'nd7_requests_total',
    help: 'Requests by route and status',
    labelNames: ['route', 'status'],
    registers: [this.registry],
  });
  readonly forks = new Counter({ name: 'nd7_forks_total', help: 'Forks found', registers: [this.registry] });
  readonly heartbeats = new Counter({
    name: 'nd7_heartbeats_total',
    help: 'Heartbeats taken, by what they said',
    labelNames: ['said'],
    registers: [this.registry],
  });
  readonly incidents = new Counter({
    name: 'nd7_incidents_total',
    help: 'Incidents of silence raised and over, in this process',
    labelNames: ['kind', 'state'],
    registers: [this.registry],
  });
  readonly looks = new Counter({
    name: 'nd7_watch_looks_total',
    help: 'Looks of the watch at a team, by what came of them',
    labelNames: ['result'],
    registers: [this.registry],
  });
  readonly ingesting = new Gauge({
    name: 'nd7_ingests_in_work',
    help: 'Segments in work now',
    registers: [this.registry],
  });

  constructor() {
    collectDefaultMetrics({ register: this.registry });
  }

  /** A segment was stored: entries by class, in the order of CLASSES, and their bytes. */
  took(counts: readonly number[], bytes: number): void {
    CLASSES.forEach((name, i) => this.entries.inc({ class: name }, counts[i] ?? 0));
    this.bytes.inc(bytes);
  }
}
