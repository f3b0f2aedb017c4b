import { randomBytes } from 'node:crypto';
import { formatTime } from '@nd7/entry';
import { machineKey, openHome, openSession, type Journal } from '@nd7/journal';
import { systemClock } from '@nd7/signing';
import { VERSION } from '../cli/version.js';

/** The record of one confined session: a chain of its own, with the boundary in front and the end of the program behind. */
export class RunRecord {
  private constructor(private readonly journal: Journal) {}

  /** Opens the chain. Throws where it cannot be written. */
  static async open(nd7Home: string): Promise<RunRecord> {
    const home = openHome(nd7Home);
    const session = `run-${randomBytes(8).toString('hex')}`;
    const journal = await openSession(home, session, {
      machine: machineKey(home),
      start: { agent: 'nd7-run', version: VERSION },
    });
    return new RunRecord(journal);
  }

  get session(): string {
    return this.journal.session;
  }

  /** Appends an entry and waits until it is on the disk. */
  async note(kind: string, data: Record<string, unknown>, source = 'recorder:nd7'): Promise<void> {
    const time = formatTime(systemClock.now());
    await this.journal.append([{ time, source, kind, data: JSON.stringify(data) }], { sync: true });
  }

  async close(): Promise<void> {
    await this.journal.close({ seal: true });
  }
}
