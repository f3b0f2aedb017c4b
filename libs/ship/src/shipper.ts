import type { Receipt } from '@nd7/receipt';
import type { SessionStatus } from '@nd7/vault-api';
import type { Cut } from './cut.js';
import { chooseCut, cutOf } from './cut.js';
import { messageOf } from './disk.js';
import { ShipError, VaultError, isVaultError } from './error.js';
import { Outbox } from './outbox.js';
import { ReceiptStore } from './receipts.js';
import { refusalOf } from './refusal.js';
import type { Alarm, ShipperOptions, ShippedSegment, ShipReport } from './report.js';
import { Statements } from './statements.js';
import { Wire } from './wire.js';

/** A tail of so many entries is cut at a seal that it has. */
const MANY = 1000;

/** How often the vault may tell us to go on elsewhere before we stop believing it. */
const MAX_TURNS = 20;

/**
 * Ships one session until verified receipts are held for all of it. It keeps no state but what is on the disk, so it can be killed at any time; it goes on
 * where the vault says and never sends again what a receipt is held for, unless the vault has lost it (an alarm). Passes of one shipper run one after
 * the other; two shippers for one session would only do work twice.
 */
export class Shipper {
  readonly session: string;
  /** Up to where a verified receipt is held; set by passes only. */
  #acknowledged = 0;
  /** The receipt for it, and the one that pins entry 0. */
  #latest: Receipt | undefined;
  #first: Receipt | undefined;
  #hasLooked = false;
  /** Whether this pass has made the seal it may make. */
  #hasSealed = false;
  /** Segments to send again because the vault has lost them, ascending. */
  #again: Receipt[] = [];
  #tail: Promise<unknown> = Promise.resolve();
  #alarms: Alarm[] = [];
  readonly #told = new Set<string>();
  readonly #outbox: Outbox;
  readonly #receipts: ReceiptStore;
  readonly #statements: Statements;
  readonly #wire: Wire;

  constructor(private readonly options: ShipperOptions) {
    this.session = options.source.session;
    this.#outbox = new Outbox(options.outbox);
    this.#receipts = new ReceiptStore(options.receipts, options.trust);
    this.#wire = new Wire(options, this.#outbox);
    this.#statements = new Statements(options, this.#receipts);
  }

  /** Up to where verified receipts are held, as far as passes have seen. */
  get acknowledged(): number {
    return this.#acknowledged;
  }

  /** Whether a verified receipt pins entry 0 and with it the session's first key. */
  get isPinned(): boolean {
    return this.#first !== undefined;
  }

  /** Reads what receipts are held, without asking the vault. */
  load(): Promise<void> {
    return this.#serially(() => this.#load());
  }

  /**
   * One pass: seals the tail, ships everything, states the session open and (where its end is recorded) closed. Throws ShipError where only a person can go on; everything
   * is kept then.
   */
  ship(): Promise<ShipReport> {
    return this.#serially(() => this.#pass());
  }

  /** States a session that cannot be shipped any more and goes on as another chain closed, as far as receipts are held. Throws VaultError, ShipError. */
  conclude(): Promise<void> {
    return this.#serially(async () => {
      await this.#load();
      await this.#statements.make(this.#first, this.#latest);
    });
  }

  #serially<T>(task: () => Promise<T>): Promise<T> {
    const result = this.#tail.then(task);
    this.#tail = result.catch(() => undefined);
    return result;
  }

  async #pass(): Promise<ShipReport> {
    this.#alarms = [];
    this.#hasSealed = false;
    const segments: ShippedSegment[] = [];
    const report = async (state: ShipReport['state'], problem?: VaultError): Promise<ShipReport> => ({
      session: this.session,
      state,
      entries: await this.options.source.entries(),
      acknowledged: this.#acknowledged,
      segments,
      alarms: this.#alarms,
      ...(problem && { problem: problem.message }),
      ...(problem?.retryAfter !== undefined && { retryAfter: problem.retryAfter }),
    });
    try {
      await this.#load();
      let turns = 0;
      for (;;) {
        if (!this.#hasLooked && !(await this.#look(segments))) return await report('pending');
        const cut = await this.#next();
        if (cut === undefined) break;
        try {
          if (!(await this.#send(cut, segments))) return await report('pending');
          turns = 0;
        } catch (error) {
          if (!isVaultError(error) || (error.code !== 'overlap' && error.code !== 'gap')) throw error;
          // The vault is elsewhere than we thought: look again, and go on where it says.
          this.#hasLooked = false;
          if (++turns > MAX_TURNS)
            throw new ShipError(
              'disagrees',
              `session ${this.session}: the vault keeps naming another place to go on (${error.message})`,
              { session: this.session, entry: cut.from },
            );
        }
      }
      await this.#statements.make(this.#first, this.#latest);
      return await report('shipped');
    } catch (error) {
      this.#hasLooked = false;
      if (isVaultError(error) && error.isTransient) return await report('offline', error);
      throw isVaultError(error) ? refusalOf(error, this.session) : error;
    }
  }

  /** Finds the newest receipt that holds. The older ones were verified when they were written. */
  async #load(): Promise<void> {
    if (this.#latest !== undefined) return;
    const of = { machine: this.options.signer.publicKey, session: this.session };
    const counts = this.#receipts.counts();
    for (const count of counts.toReversed()) {
      const receipt = await this.#receipts.read(count, of);
      if (receipt !== undefined) {
        this.#acknowledge(receipt);
        break;
      }
      this.#alarm(
        'bad-receipt-file',
        `the receipt file for ${String(count)} entries holds no receipt of this session under the pinned key (any more)`,
      );
    }
    // Left over where a crash came between the receipt and this.
    for (const from of this.#outbox.waiting()) if (from < this.#acknowledged) this.#outbox.remove(from);
    const [first] = counts;
    const oldest = first === undefined || this.#first !== undefined ? undefined : await this.#receipts.read(first, of);
    if (oldest?.statement.from === 0) this.#first = oldest;
  }

  /** Asks the vault how far it is. False where a receipt that it owes us is not published yet. */
  async #look(segments: ShippedSegment[]): Promise<boolean> {
    const status = await this.#wire.status();
    const [held, count] = [status?.entries ?? 0, await this.options.source.entries()];
    const signed = Math.max(held, this.#acknowledged);
    if (signed > count) {
      const text = `the vault holds (or has signed) ${String(signed)} entries of session ${this.session} and this log has only ${String(count)}: it was cut back or comes from an older copy. Nothing was sent. The recorder goes on in a new chain`;
      throw new ShipError('log-behind', text, { session: this.session, entry: count, reason: 'truncated' });
    }
    this.#again = [];
    if (this.#latest !== undefined) await this.#checkLog(this.#latest);
    if (held > this.#acknowledged && !(await this.#fetchReceipts(held, segments))) return false;
    if (held < this.#acknowledged) await this.#sendAgain(held);
    else this.#checkHead(status);
    this.#hasLooked = true;
    return true;
  }

  #checkHead(status: SessionStatus | undefined): void {
    const latest = this.#latest?.statement;
    if (status === undefined || latest === undefined || status.entries !== latest.to || status.head === latest.head)
      return;
    throw new ShipError(
      'disagrees',
      `the vault shows another head for ${String(latest.to)} entries of session ${this.session} than the one it signed: ${status.head}, and the receipt says ${latest.head}`,
      {
        session: this.session,
        entry: latest.to - 1,
      },
    );
  }

  /** The vault took segments whose receipts never reached us (or were lost here): fetches them. */
  async #fetchReceipts(held: number, segments: ShippedSegment[]): Promise<boolean> {
    while (this.#acknowledged < held) {
      const from = this.#acknowledged;
      const text = await this.#wire.awaitReceipt(this.#wire.receiptPath(from));
      if (text === undefined) return false;
      const count = await this.options.source.entries();
      const receipt = await this.#wire.accept(text, { from });
      const { to } = receipt.statement;
      if (to > count || to > held)
        throw new ShipError(
          'bad-receipt',
          `the vault gives a receipt for ${String(to)} entries of session ${this.session} and says it holds ${String(held)}`,
          { session: this.session, entry: from },
        );
      await this.#checkLog(receipt);
      await this.#keep(receipt, segments);
    }
    return true;
  }

  /**
   * Holds a receipt against the log as it stands now. Where they differ the machine signed other entries than stand here: the log was changed. The vault is then
   * shown what stands here, and says what that is (a fork).
   */
  async #checkLog(receipt: Receipt): Promise<void> {
    const { from, to, prev, head } = receipt.statement;
    const cut = await cutOf(this.options.source, from, to);
    if (cut.prev === prev && cut.head === head) return;
    await this.#wire.put(await this.#wire.claim(cut), cut);
    throw new ShipError(
      'disagrees',
      `session ${this.session}: entries ${String(from)} to ${String(to - 1)} are not what this machine signed and the vault holds a receipt for, and yet it took them`,
      { session: this.session, entry: to - 1 },
    );
  }

  /** The vault has lost segments it gave receipts for: an alarm, and the same bytes under the same claims are sent again. */
  async #sendAgain(held: number): Promise<void> {
    const text = `the vault holds ${String(held)} entries of session ${this.session}, and there are receipts for ${String(this.#acknowledged)}: it was set back (a restored backup?). The same segments are sent again; keep the receipts, they prove what it held`;
    this.#alarm('vault-behind', text);
    const of = { machine: this.options.signer.publicKey, session: this.session };
    for (const count of this.#receipts.counts()) {
      if (count <= held || count > this.#acknowledged) continue;
      const receipt = await this.#receipts.read(count, of);
      if (receipt !== undefined) this.#again.push(receipt);
    }
    if (this.#again[0]?.statement.from !== held) {
      throw new ShipError(
        'disagrees',
        `${text}; but it stands in the middle of a segment that it signed, where no restored copy can stand`,
        { session: this.session, entry: held },
      );
    }
  }

  /** What is to be sent next, sealed: a segment that was lost, a cut that waits in the outbox, or a new one. */
  async #next(): Promise<Cut | undefined> {
    const { source } = this.options;
    const lost = this.#again.shift()?.statement;
    if (lost !== undefined) return cutOf(source, lost.from, lost.to);
    const from = this.#acknowledged;
    let count = await source.entries();
    const waiting = this.#outbox.read(from);
    if (waiting !== undefined) {
      const cut = waiting.to <= count ? await cutOf(source, from, waiting.to) : undefined;
      if (cut?.prev === waiting.prev && cut.head === waiting.head) return cut;
      const aside = this.#outbox.setAside(from);
      this.#alarm(
        'cut-changed',
        `session ${this.session}: the log is not what was signed for entries ${String(from)} to ${String(waiting.to - 1)}; that cut is kept as ${aside}`,
      );
    }
    if (count <= from) return undefined;
    // A long tail has seals in it, and so has the beginning: only where none is found one is made.
    const sealed = from === 0 || count - from > MANY ? await chooseCut(source, from, count) : undefined;
    if (sealed !== undefined) return sealed;
    try {
      // One seal a pass: entries that come while it sends wait for the next, else a busy session would be sealed at every other entry.
      if (!this.#hasSealed) await source.seal();
      this.#hasSealed = true;
      count = await source.entries();
    } catch (error) {
      this.#alarm(
        'unsealed',
        `session ${this.session} could not be sealed (${messageOf(error)}): only what stands before its last seal is shipped`,
      );
    }
    return chooseCut(source, from, count);
  }

  /** Sends one cut and holds its receipt. False where it is taken but not published in time. */
  async #send(cut: Cut, segments: ShippedSegment[]): Promise<boolean> {
    const claim = await this.#wire.claim(cut);
    // A segment that is sent again has its claim in its receipt.
    const isNew = cut.from >= this.#acknowledged;
    if (isNew && this.#outbox.read(cut.from)?.signature !== claim.signature) this.#outbox.write(claim);
    const answer = await this.#wire.put(claim, cut);
    const text = 'receipt' in answer ? answer.receipt : await this.#wire.awaitReceipt(answer.location);
    if (text === undefined) return false;
    await this.#keep(await this.#wire.accept(text, claim), segments);
    return true;
  }

  /** A verified receipt goes to the disk; only then does it count. */
  async #keep(receipt: Receipt, segments: ShippedSegment[]): Promise<void> {
    const { from, to, received, machine, session } = receipt.statement;
    const present = await this.#receipts.read(to, { machine, session });
    if (present !== undefined && present.text !== receipt.text) {
      this.#alarm(
        'receipt-changed',
        `session ${session}: there is another receipt for ${String(to)} entries already; both are kept: two for one segment prove that the vault was set back`,
      );
      this.#receipts.putBeside(to, receipt.text);
    } else {
      this.#receipts.put(to, receipt.text);
    }
    this.#outbox.remove(from);
    if (to > this.#acknowledged) this.#acknowledge(receipt);
    const segment = { from, to, index: receipt.index, received };
    segments.push(segment);
    this.options.onEvent?.({ type: 'acknowledged', ...segment });
  }

  #acknowledge(receipt: Receipt): void {
    this.#latest = receipt;
    this.#acknowledged = receipt.statement.to;
    if (receipt.statement.from === 0) this.#first = receipt;
  }

  #alarm(code: Alarm['code'], text: string): void {
    const alarm = { code, text };
    this.#alarms.push(alarm);
    // Told once: whoever writes it into the session makes an entry, and that makes the next pass.
    if (this.#told.has(code + text)) return;
    this.#told.add(code + text);
    this.options.onEvent?.({ type: 'alarm', alarm });
  }
}
