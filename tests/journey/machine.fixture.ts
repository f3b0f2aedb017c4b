// An enrolled machine with a throw-away home, and shippers as a new process has them: nothing in memory.
import { spawn, type ChildProcess } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openHome } from '@nd7/journal';
import { checkReceiptItself } from '@nd7/receipt';
import {
  enrol,
  Shipper,
  ShipError,
  trustOf,
  VaultClient,
  type ShipEvent,
  type ShipperOptions,
  type ShipReport,
  type VaultFile,
} from '@nd7/ship';
import { loadKeyFile, systemClock, systemRandom, verifySignatures, type KeyPair } from '@nd7/signing';
import { SessionDouble } from '@nd7/testing';
import type { Backend } from './real-vault.fixture.js';

/** The names in a folder, none where it is not there. */
export const files = (folder: string): string[] => (existsSync(folder) ? readdirSync(folder).sort() : []);

/** A process that ships a session's log file once: only what is on the disk outlives it. */
const SHIP_ONCE = `
import { readFileSync } from 'node:fs';
import { readVaultFile, ShipLoop } from ${JSON.stringify(import.meta.resolve('@nd7/ship'))};
import { loadKeyFile, systemClock, systemRandom } from ${JSON.stringify(import.meta.resolve('@nd7/signing'))};
const [home, session] = process.argv.slice(1);
const lines = readFileSync(home + '/' + session + '.jsonl', 'utf8').split('\\n').slice(0, -1).map((line) => Buffer.from(line + '\\n'));
const source = { session, entries: () => lines.length, range: (a, b) => Buffer.concat(lines.slice(a, b)), seal: async () => undefined };
const loop = new ShipLoop({
  home, vault: readVaultFile(home), signer: loadKeyFile(home + '/keys/machine.key'), clock: systemClock, random: systemRandom, source: () => source,
  retry: { attempts: 2, baseMs: 10, capMs: 50 },
});
const { [session]: outcome } = await loop.flush([session]);
await loop.stop();
process.stdout.write(JSON.stringify(outcome));
process.exit(outcome.state === 'shipped' ? 0 : 1);
`;

export class Machine {
  readonly events: ShipEvent[] = [];
  readonly key: KeyPair;

  private constructor(
    readonly home: string,
    readonly vault: VaultFile,
  ) {
    this.key = loadKeyFile(join(home, 'keys', 'machine.key'));
  }

  /** Enrols a new home; `through` is the address that it is told. */
  static async enrol(backend: Backend, through: { url: string } = backend): Promise<Machine> {
    const home = mkdtempSync(join(tmpdir(), 'nd7-machine-'));
    openHome(home);
    const options = { name: 'box', clock: systemClock, random: systemRandom };
    const { vault } = await enrol({ url: through.url, token: await backend.enrolmentToken(), home, ...options });
    return new Machine(home, vault);
  }

  remove(): void {
    rmSync(this.home, { recursive: true, force: true });
  }

  receipts(session: string): string {
    return join(this.home, 'sessions', session, 'receipts');
  }

  outbox(session: string): string {
    return join(this.home, 'outbox', session);
  }

  client(url = this.vault.url): VaultClient {
    const access = { machine: this.key.publicKey, token: this.vault.token, signer: this.key };
    return new VaultClient({ url, access, clock: systemClock, random: systemRandom, timeoutMs: 20_000 });
  }

  /** A log of this machine that begins with entry 0 and its seal. */
  log(session: string): SessionDouble {
    const log = new SessionDouble(this.key, session);
    void log.seal();
    return log;
  }

  shipper(log: SessionDouble, more: Partial<ShipperOptions> = {}): Shipper {
    return new Shipper({
      source: log,
      client: this.client(),
      signer: this.key,
      origin: this.vault.origin,
      trust: trustOf(this.vault),
      outbox: this.outbox(log.session),
      receipts: this.receipts(log.session),
      clock: systemClock,
      random: systemRandom,
      retry: { attempts: 3, baseMs: 20, capMs: 200 },
      onEvent: (event) => this.events.push(event),
      ...more,
    });
  }

  ship(log: SessionDouble, more: Partial<ShipperOptions> = {}): Promise<ShipReport> {
    return this.shipper(log, more).ship();
  }

  /** The ShipError that a pass ends with; throws where it ends otherwise. */
  async failure(log: SessionDouble, more: Partial<ShipperOptions> = {}): Promise<ShipError> {
    const outcome = await this.ship(log, more).catch((error: unknown) => error);
    if (outcome instanceof ShipError) return outcome;
    throw new Error(`expected a ShipError: ${JSON.stringify(outcome)}`, { cause: outcome });
  }

  /** Starts a process that ships the log once; `limit` runs first in its shell. */
  process(log: SessionDouble, limit = ':'): { child: ChildProcess; over: Promise<{ code: number; output: string }> } {
    writeFileSync(join(this.home, `${log.session}.jsonl`), log.range(0, log.entries()));
    const words = ['--input-type=module', '-e', SHIP_ONCE, this.home, log.session];
    const child = spawn('sh', ['-c', `${limit}; exec "$@"`, 'sh', process.execPath, ...words], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    let output = '';
    child.stdout.on('data', (chunk: Buffer) => (output += chunk.toString()));
    const over = new Promise<{ code: number; output: string }>((resolve, reject) => {
      child.once('error', reject);
      child.once('close', (code) => resolve({ code: code ?? 137, output }));
    });
    return { child, over };
  }

  /** Throws unless the vault holds exactly the log, and a receipt that holds is on the disk for every entry, once. */
  async holdsAll(log: SessionDouble, url = this.vault.url): Promise<void> {
    const status = await this.client(url).sessionStatus(log.session);
    same('entries at the vault', status?.entries, log.entries());
    same('head at the vault', status?.head, log.head);
    let count = 0;
    for (const to of this.counts(log.session)) {
      const text = readFileSync(join(this.receipts(log.session), `${to}.tlog-proof`));
      const verdict = await checkReceiptItself(text, trustOf(this.vault), verifySignatures);
      if (!verdict.ok) throw new Error(`the receipt for ${to} entries: ${verdict.reason}`);
      same('where a receipt begins', verdict.receipt.statement.from, count);
      count = to;
    }
    same('entries with receipts', count, log.entries());
    same('cuts that wait', files(this.outbox(log.session)).filter((name) => /^[0-9]+$/.test(name)).length, 0);
  }

  /** Counts for which a receipt is on the disk. */
  counts(session: string): number[] {
    return files(this.receipts(session))
      .flatMap((name) => (/^[0-9]+\.tlog-proof$/.test(name) ? [parseInt(name, 10)] : []))
      .sort((a, b) => a - b);
  }
}

function same(what: string, found: unknown, expected: unknown): void {
  if (found !== expected) throw new Error(`${what}: expected ${String(expected)}, found ${String(found)}`);
}
