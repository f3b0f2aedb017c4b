import { checkReceiptItself } from '@nd7/receipt';
import { generateKeyPair, systemClock, systemRandom, verifySignatures } from '@nd7/signing';
import { VaultDouble, type SessionDouble } from '@nd7/testing';
import { parseVkey } from '@nd7/tlog';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  Outbox,
  ShipError,
  Shipper,
  VaultClient,
  type SessionSource,
  type ShipEvent,
  type ShipperOptions,
  type ShipReport,
} from './index.js';

export const machine = generateKeyPair();

/** The names in a folder, none where it is not there. */
export const files = (folder: string): string[] => (existsSync(folder) ? readdirSync(folder).sort() : []);

/** A vault double, a machine that it knows, and a home folder. Close it. */
export class Bench {
  readonly home = mkdtempSync(join(tmpdir(), 'nd7-ship-'));
  readonly receipts = join(this.home, 'receipts');
  readonly outbox = join(this.home, 'outbox');
  /** What shippers waited, in milliseconds; nobody really waits. */
  readonly slept: number[] = [];
  readonly events: ShipEvent[] = [];
  readonly #token: string;

  private constructor(readonly vault: VaultDouble) {
    this.#token = vault.addMachine(machine.publicKey);
  }

  static async open(): Promise<Bench> {
    return new Bench(await VaultDouble.start());
  }

  async close(): Promise<void> {
    await this.vault.stop();
    rmSync(this.home, { recursive: true });
  }

  client(url = this.vault.url): VaultClient {
    const access = { machine: machine.publicKey, token: this.#token, signer: machine };
    return new VaultClient({ url, access, clock: systemClock, random: systemRandom });
  }

  /** A shipper as a new process has it: nothing in memory. */
  shipper(source: SessionSource, more: Partial<ShipperOptions> = {}): Shipper {
    return new Shipper({
      source,
      client: this.client(),
      signer: machine,
      origin: this.vault.log.origin,
      trust: { keys: [parseVkey(this.vault.vkey)!] },
      outbox: this.outbox,
      receipts: this.receipts,
      clock: systemClock,
      random: systemRandom,
      retry: { attempts: 3, baseMs: 100, capMs: 5000 },
      receiptWaitMs: 0,
      sleep: (ms) => {
        this.slept.push(ms);
        return Promise.resolve();
      },
      onEvent: (event) => this.events.push(event),
      ...more,
    });
  }

  /** Throws unless the vault holds exactly the log, all it holds verifies, and a good receipt for each segment is on the disk. */
  async checkAllShipped(log: SessionDouble): Promise<void> {
    await this.vault.checkAll();
    const held = this.vault.bytes(machine.publicKey, log.session);
    same('bytes held', Buffer.from(held).equals(Buffer.from(log.range(0, log.entries()))), true);
    let count = 0;
    const counts = files(this.receipts).flatMap((name) =>
      /^[0-9]+\.tlog-proof$/.test(name) ? [parseInt(name, 10)] : [],
    );
    for (const to of counts.sort((a, b) => a - b)) {
      const text = readFileSync(join(this.receipts, `${String(to)}.tlog-proof`));
      const verdict = await checkReceiptItself(text, { keys: [parseVkey(this.vault.vkey)!] }, verifySignatures);
      if (!verdict.ok) throw new Error(verdict.reason);
      same(
        'receipted run',
        `${String(verdict.receipt.statement.from)} ${String(verdict.receipt.statement.to)}`,
        `${String(count)} ${String(to)}`,
      );
      count = to;
    }
    same('entries with receipts', count, log.entries());
    same('cuts that wait', new Outbox(this.outbox).waiting().length, 0);
  }
}

/** The ShipError that a pass fails with; throws where it does not. */
export async function failure(pass: Promise<ShipReport>): Promise<ShipError> {
  const outcome = await pass.catch((error: unknown) => error);
  if (outcome instanceof ShipError) return outcome;
  throw new Error('expected a ShipError', { cause: outcome });
}

function same(what: string, found: unknown, expected: unknown): void {
  if (found !== expected) throw new Error(`${what}: expected ${String(expected)}, found ${String(found)}`);
}
