import { toBase64 } from '@nd7/entry';
import type { Receipt, Statement } from '@nd7/receipt';
import { checkReceiptItself } from '@nd7/receipt';
import { closeMessage, openMessage } from '@nd7/segment';
import { verifySignatures } from '@nd7/signing';
import type { StatementAnswer } from './client.js';
import { firstKey, hasEnded } from './cut.js';
import { ShipError } from './error.js';
import type { ReceiptStore } from './receipts.js';
import { pause, RETRY, retrying } from './retry.js';
import type { ShipperOptions } from './report.js';

/** States a session open once its first segment is acknowledged, and closed once its end is. Their receipts stand beside the others. */
export class Statements {
  constructor(
    private readonly options: ShipperOptions,
    private readonly receipts: ReceiptStore,
  ) {}

  /** Makes what is due and not stated yet; a receipt that is not published yet is fetched by a later pass (the same statement again is no second leaf). */
  async make(first: Receipt | undefined, latest: Receipt | undefined): Promise<void> {
    if (first === undefined || latest === undefined) return;
    await this.open(first);
    await this.close(latest);
  }

  /** By the first segment, which does not change: so the same statement is made again after a crash. */
  private async open(first: Receipt): Promise<void> {
    const { source, origin, client } = this.options;
    const { session, machine, to: entries, head } = first.statement;
    const key = this.receipts.has('open') ? undefined : await firstKey(source);
    if (key === undefined) return;
    const signature = await this.sign(openMessage({ origin, machine, session, entries, head, key }));
    await this.state(
      'open',
      (s) => s.type === 'open' && s.key === key,
      () => client.open(session, { entries, head, key, signature }),
    );
  }

  private async close(latest: Receipt): Promise<void> {
    const { source, origin, client } = this.options;
    const { session, machine, to: entries, head } = latest.statement;
    const name = `close-${String(entries)}`;
    if (this.receipts.has(name)) return;
    const isContinued = (await source.isContinued?.()) === true;
    // Of a chain that goes on elsewhere the end may stand in what cannot be shipped any more: it is not looked for.
    const reason = isContinued ? 'continued' : (await hasEnded(source, entries)) ? 'ended' : undefined;
    if (reason === undefined) return;
    const signature = await this.sign(closeMessage({ origin, machine, session, entries, head, reason }));
    await this.state(
      name,
      (s) => s.type === 'close' && s.head === head && s.entries === entries,
      () => client.close(session, { entries, head, reason, signature }),
    );
  }

  private async sign(message: Uint8Array): Promise<string> {
    return toBase64(await this.options.signer.sign(message));
  }

  private async state(
    name: string,
    speaksOfIt: (statement: Statement) => boolean,
    ask: () => Promise<StatementAnswer>,
  ): Promise<void> {
    const { source, signer, client, trust, random, retry = RETRY, sleep = pause, signal } = this.options;
    const text = await retrying(
      async () => {
        const answer = await ask();
        return 'receipt' in answer ? answer.receipt : client.receipt(answer.location);
      },
      retry,
      random,
      sleep,
      signal,
    );
    if (text === undefined) return;
    const verdict = await checkReceiptItself(text, trust, verifySignatures, { anyType: true });
    const statement = verdict.ok ? verdict.receipt.statement : undefined;
    const isOurs =
      statement !== undefined &&
      'session' in statement &&
      statement.session === source.session &&
      statement.machine === signer.publicKey;
    if (!isOurs || !speaksOfIt(statement)) {
      const reason = verdict.ok ? 'receipt-mismatch' : verdict.reason;
      throw new ShipError(
        'bad-receipt',
        `THE VAULT'S ANSWER IS NO RECEIPT for the ${name} statement of session ${source.session} (${reason}). Ask who runs the vault before you go on`,
        { session: source.session, reason },
      );
    }
    this.receipts.put(name, text);
  }
}
