import { toBase64 } from '@nd7/entry';
import type { Receipt } from '@nd7/receipt';
import type { SignedClaim } from '@nd7/segment';
import { claimMessage, declareContentSize } from '@nd7/segment';
import type { SessionStatus } from '@nd7/vault-api';
import { acceptReceipt, type Expected } from './accept.js';
import type { StatementAnswer } from './client.js';
import type { Cut } from './cut.js';
import type { Outbox } from './outbox.js';
import type { ShipperOptions } from './report.js';
import { pause, RETRY, retrying } from './retry.js';

/** One session's requests to the vault, each tried as often as the plan says. Throws VaultError when that was not enough. */
export class Wire {
  constructor(
    private readonly options: ShipperOptions,
    private readonly outbox: Outbox,
  ) {}

  private get session(): string {
    return this.options.source.session;
  }

  /** What the vault holds of the session; undefined where it knows none. */
  status(): Promise<SessionStatus | undefined> {
    return this.retrying(() => this.options.client.sessionStatus(this.session));
  }

  /** The cut under the machine's signature. The same cut has the same signature, always. */
  async claim({ from, to, prev, head }: Cut): Promise<SignedClaim> {
    const { origin, signer } = this.options;
    const claim = { origin, machine: signer.publicKey, session: this.session, from, to, prev, head };
    return { ...claim, signature: toBase64(await signer.sign(claimMessage(claim))) };
  }

  async put(claim: SignedClaim, cut: Cut): Promise<StatementAnswer> {
    // The encoder streams and leaves the content size out; the vault wants it declared.
    // Native code, which those who only read what a vault said do not load.
    const { compress } = await import('@mongodb-js/zstd');
    const packed = declareContentSize(await compress(Buffer.from(cut.body)), cut.body.length);
    const isSmaller = packed !== undefined && packed.length < cut.body.length;
    const [body, encoding] = isSmaller ? [packed, 'zstd' as const] : [cut.body, 'identity' as const];
    this.options.onEvent?.({ type: 'sending', from: cut.from, to: cut.to, bytes: cut.body.length, wire: body.length });
    return this.retrying(() => this.options.client.putSegment(claim, body, encoding));
  }

  /** Where the receipt of the segment from an entry on is to be had. */
  receiptPath(from: number): string {
    return this.options.client.receiptPath(this.options.signer.publicKey, this.session, from);
  }

  /** The receipt at a place, waited for; undefined where it is not published in time. */
  async awaitReceipt(location: string): Promise<string | undefined> {
    const { client, clock, sleep = pause, signal, receiptWaitMs = 10_000 } = this.options;
    const until = clock.now() + receiptWaitMs;
    for (let delay = 50; ; delay = Math.min(2 * delay, 1000)) {
      const text = await this.retrying(() => client.receipt(location));
      if (text !== undefined) return text;
      if (clock.now() + delay > until || signal?.aborted === true) return undefined;
      await sleep(delay, signal);
    }
  }

  /** The verified receipt in an answer. Throws ShipError `bad-receipt`. */
  accept(text: string, expected: Expected): Promise<Receipt> {
    const { origin, signer, trust } = this.options;
    const own = { origin, machine: signer.publicKey, session: this.session };
    return acceptReceipt(text, { ...own, ...expected }, trust, this.outbox);
  }

  private retrying<T>(task: () => Promise<T>): Promise<T> {
    const { retry = RETRY, random, sleep = pause, signal } = this.options;
    return retrying(task, retry, random, sleep, signal);
  }
}
