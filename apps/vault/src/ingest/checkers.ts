import { Injectable } from '@nestjs/common';
import { Worker } from 'node:worker_threads';
import { VaultConfig } from '../config.js';
import { Log } from '../log/log.js';
import { Problem } from '../http/problem.js';
import { checkSegment, type CheckJob, type Found } from './check.js';
import type { CheckAnswer, CheckRequest } from './check-thread.js';
import { Kernel } from './kernel.js';
import { Room } from './room.js';

/** Segments of one thread whose entries are in memory at once, of up to 8 MiB each: one that is inflated while another is checked, and what waits between. */
const INFLATED = 4;

/**
 * Checks segments in threads of its own (`ND7_VAULT_THREADS`), so that inflating, hashing and checking, two thirds of what a segment costs, keep neither
 * requests nor the database waiting, and their memory is collected without going through all that the service holds. With no thread it is done here.
 */
@Injectable()
export class Checkers {
  private readonly threads: CheckThread[];
  private readonly room: Room;

  constructor(
    config: VaultConfig,
    log: Log,
    private readonly kernel: Kernel,
  ) {
    this.threads = Array.from({ length: config.threads }, () => new CheckThread(log));
    this.room = new Room(INFLATED * Math.max(1, config.threads));
  }

  /** Throws the Problem of bytes that do not check out; another error where the thread that had them died. */
  check(job: CheckJob): Promise<Found> {
    return this.room.use(() => {
      const [first, ...others] = this.threads;
      if (first === undefined) return checkSegment(job, (work) => this.kernel.use(work));
      return others.reduce((least, one) => (one.load < least.load ? one : least), first).check(job);
    });
  }

  /** Called by Nest. */
  async onApplicationShutdown(): Promise<void> {
    await Promise.all(this.threads.map((thread) => thread.stop()));
  }
}

interface Waiting {
  resolve: (found: Found) => void;
  reject: (error: Error) => void;
}

/** One thread, made again when it dies. */
class CheckThread {
  private readonly waiting = new Map<number, Waiting>();
  private last = 0;
  private worker: Worker | undefined;
  private stopped = false;

  constructor(private readonly log: Log) {
    this.worker = this.start();
  }

  /** Segments it has not answered yet. */
  get load(): number {
    return this.waiting.size;
  }

  check(job: CheckJob): Promise<Found> {
    return new Promise((resolve, reject) => {
      this.worker ??= this.start();
      const id = (this.last += 1);
      this.waiting.set(id, { resolve, reject });
      this.worker.postMessage({ id, job } satisfies CheckRequest);
    });
  }

  async stop(): Promise<void> {
    this.stopped = true;
    await this.worker?.terminate();
  }

  private start(): Worker {
    const worker = new Worker(new URL('./check-thread.js', import.meta.url));
    worker.unref(); // the service's sockets say how long the process lives
    worker.on('message', (answer: CheckAnswer) => this.take(answer));
    worker.on('error', (error) => this.died(worker, error));
    worker.on('exit', (code) => this.died(worker, new Error(`it ended with code ${String(code)}`)));
    return worker;
  }

  private take(answer: CheckAnswer): void {
    const waiting = this.waiting.get(answer.id);
    this.waiting.delete(answer.id);
    if ('found' in answer) waiting?.resolve(answer.found);
    else if ('problem' in answer) {
      const { code, detail, extra } = answer.problem;
      waiting?.reject(new Problem(code, detail, extra));
    } else waiting?.reject(new Error(answer.failed));
  }

  /** Whoever waited is told; nothing was stored, and a machine sends again. */
  private died(worker: Worker, error: Error): void {
    if (this.worker !== worker) return;
    this.worker = undefined;
    if (!this.stopped) this.log.error('a checking thread died', { error });
    const lost = [...this.waiting.values()];
    this.waiting.clear();
    for (const { reject } of lost) reject(new Error(`the checking thread died: ${error.message}`));
  }
}
