import type { Clock, Random } from '@nd7/entry';
import { toBase64 } from '@nd7/entry';
import type { Receipt, Trust } from '@nd7/receipt';
import type { SignedClaim } from '@nd7/segment';
import { claimMessage, declareContentSize } from '@nd7/segment';
import type { Signer } from '@nd7/tlog';
import type { SessionStatus } from '@nd7/vault-api';
import { compress } from '@mongodb-js/zstd';
import type { StatementAnswer, VaultClient } from './client.js';
import type { Cut, SessionSource } from './cut.js';
import { chooseCut, cutOf } from './cut.js';
import { messageOf } from './disk.js';
import { ShipError, VaultError } from './error.js';
import { Outbox } from './outbox.js';
import { ReceiptStore } from './receipts.js';
import { acceptReceipt, type Expected } from './accept.js';
import { refusalOf } from './refusal.js';
import { pause, RETRY, retrying, type RetryPlan, type Sleep } from './retry.js';
import { Statements } from './statements.js';

export interface ShipperOptions {
  source: SessionSource;
  client: VaultClient;
  /** The machine's key. */
  signer: Signer;
  /** The log at the vault, as pinned. */
  origin: string;
  trust: Trust;
  /** `outbox/<session>` and `sessions/<session>/receipts`; made when first needed. */
  outbox: string;
  receipts: string;
  clock: Clock;
  random: Random;
  retry?: RetryPlan;
  /** How long one pass waits for a receipt that is not published yet, milliseconds. */
  receiptWaitMs?: number;
  sleep?: Sleep;
  signal?: AbortSignal;
  onEvent?: (event: ShipEvent) => void;
}

/** Something a person should know of although shipping goes on. */
export interface Alarm {
  /**
   * `vault-behind`: the vault lost what it gave receipts for (a restored backup?). `receipt-changed`: it gave a second receipt for a leaf. `cut-changed`: the
   * log is not any more what a cut in the outbox says. `bad-receipt-file`: a receipt on the disk holds no more. `unsealed`: the tail could not be sealed.
   */
  code: 'vault-behind' | 'receipt-changed' | 'cut-changed' | 'bad-receipt-file' | 'unsealed';
  text: string;
}

/** One acknowledged segment. */
export interface ShippedSegment {
  from: number;
  to: number;
  /** Place of its leaf in the vault's log. */
  index: number;
  /** The vault's clock. */
  received: string;
}

export type ShipEvent =
  | { type: 'sending'; from: number; to: number; bytes: number; wire: number }
  | ({ type: 'acknowledged' } & ShippedSegment)
  | { type: 'alarm'; alarm: Alarm };

/** What a pass came to. */
export interface ShipReport {
  session: string;
  /** `shipped`: all entries up to the last seal are acknowledged. `pending`: taken, the receipt is not published yet. `offline`: the vault could not be reached or is busy; all is queued. */
  state: 'shipped' | 'pending' | 'offline';
  /** Entries in the log, and up to which a verified receipt is held. */
  entries: number;
  acknowledged: number;
  segments: ShippedSegment[];
  alarms: Alarm[];
  /** Why it is offline, and how long the vault asks to be left alone (milliseconds). */
  problem?: string;
  retryAfter?: number;
}

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
  /** Segments to send again because the vault has lost them, ascending. */
  #again: Receipt[] = [];
  #tail: Promise<unknown> = Promise.resolve();
  #alarms: Alarm[] = [];
  readonly #told = new Set<string>();
  readonly #outbox: Outbox;
  readonly #receipts: ReceiptStore;
  readonly #statements: Statements;

  constructor(private readonly options: ShipperOptions) {
    this.session = options.source.session;
    this.#outbox = new Outbox(options.outbox);
    this.#receipts = new ReceiptStore(options.receipts, options.trust);
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

  #serially<T>(task: () => Promise<T>): Promise<T> {
    const result = this.#tail.then(task);
    this.#tail = result.catch(() => undefined);
    return result;
  }

  async #pass(): Promise<ShipReport> {
    this.#alarms = [];
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
          if (!(error instanceof VaultError) || (error.code !== 'overlap' && error.code !== 'gap')) throw error;
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
      if (error instanceof VaultError && error.isTransient) return await report('offline', error);
      throw error instanceof VaultError ? refusalOf(error, this.session) : error;
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
    const status = await this.#retrying(() => this.options.client.sessionStatus(this.session));
    const [held, count] = [status?.entries ?? 0, await this.options.source.entries()];
    const signed = Math.max(held, this.#acknowledged);
    if (signed > count) {
      const text = `the vault holds (or has signed) ${String(signed)} entries of session ${this.session} and this log has only ${String(count)}: it was cut back or comes from an older copy. Nothing was sent; record on in a new session`;
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
      const text = await this.#awaitReceipt(
        this.options.client.receiptPath(this.options.signer.publicKey, this.session, from),
      );
      if (text === undefined) return false;
      const count = await this.options.source.entries();
      const receipt = await this.#accept(text, { from });
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
    await this.#put(await this.#claim(cut), cut);
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
      await source.seal();
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
    const claim = await this.#claim(cut);
    // A segment that is sent again has its claim in its receipt.
    const isNew = cut.from >= this.#acknowledged;
    if (isNew && this.#outbox.read(cut.from)?.signature !== claim.signature) this.#outbox.write(claim);
    const answer = await this.#put(claim, cut);
    const text = 'receipt' in answer ? answer.receipt : await this.#awaitReceipt(answer.location);
    if (text === undefined) return false;
    await this.#keep(await this.#accept(text, claim), segments);
    return true;
  }

  async #put(claim: SignedClaim, cut: Cut): Promise<StatementAnswer> {
    // The encoder streams and leaves the content size out; the vault wants it declared.
    const packed = declareContentSize(await compress(Buffer.from(cut.body), 1), cut.body.length);
    const [body, encoding] =
      packed !== undefined && packed.length < cut.body.length
        ? [packed, 'zstd' as const]
        : [cut.body, 'identity' as const];
    this.options.onEvent?.({ type: 'sending', from: cut.from, to: cut.to, bytes: cut.body.length, wire: body.length });
    return this.#retrying(() => this.options.client.putSegment(claim, body, encoding));
  }

  async #claim(cut: Cut): Promise<SignedClaim> {
    const { origin, signer } = this.options;
    const claim = {
      origin,
      machine: signer.publicKey,
      session: this.session,
      from: cut.from,
      to: cut.to,
      prev: cut.prev,
      head: cut.head,
    };
    return { ...claim, signature: toBase64(await signer.sign(claimMessage(claim))) };
  }

  async #accept(text: string, expected: Expected): Promise<Receipt> {
    const { origin, signer, trust } = this.options;
    return acceptReceipt(
      text,
      { origin, machine: signer.publicKey, session: this.session, ...expected },
      trust,
      this.#outbox,
    );
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

  async #awaitReceipt(location: string): Promise<string | undefined> {
    const { client, clock, sleep = pause, signal, receiptWaitMs = 10_000 } = this.options;
    const until = clock.now() + receiptWaitMs;
    for (let delay = 50; ; delay = Math.min(2 * delay, 1000)) {
      const text = await this.#retrying(() => client.receipt(location));
      if (text !== undefined) return text;
      if (clock.now() + delay > until || signal?.aborted === true) return undefined;
      await sleep(delay, signal);
    }
  }

  #retrying<T>(task: () => Promise<T>): Promise<T> {
    const { retry = RETRY, random, sleep = pause, signal } = this.options;
    return retrying(task, retry, random, sleep, signal);
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
