import type { HeadStatement, Receipt, Trust } from '@nd7/receipt';
import { checkReceiptItself } from '@nd7/receipt';
import { verifySignatures } from '@nd7/signing';
import { ShipError } from './error.js';
import type { Outbox } from './outbox.js';

/** What a receipt must speak of: all of a claim, or as much as is known. */
export type Expected = Pick<HeadStatement, 'from'> & Partial<Pick<HeadStatement, 'to' | 'prev' | 'head'>>;

/** Which member of a receipt is another one than was sent. */
const COMPARED = ['origin', 'machine', 'session', 'from', 'to', 'prev', 'head'] as const;

/**
 * The one gate between an answer of the vault and a receipt that counts: it holds by itself under the pinned key and policy, and it speaks of exactly what
 * was sent. Anything else is kept as evidence and thrown as ShipError `bad-receipt`.
 */
export async function acceptReceipt(
  text: string,
  expected: Expected & Pick<HeadStatement, 'origin' | 'machine' | 'session'>,
  trust: Trust,
  outbox: Outbox,
): Promise<Receipt> {
  const verdict = await checkReceiptItself(text, trust, verifySignatures);
  const other = verdict.ok
    ? COMPARED.find(
        (member) => expected[member] !== undefined && verdict.receipt.statement[member] !== expected[member],
      )
    : undefined;
  if (verdict.ok && other === undefined) return verdict.receipt;
  const reason = verdict.ok ? 'receipt-mismatch' : verdict.reason;
  const kept = outbox.keepRefused(expected.from, text);
  const why = verdict.ok ? `it speaks of another ${other ?? ''} than was sent` : EXPLAINED[verdict.reason];
  throw new ShipError(
    'bad-receipt',
    `THE VAULT'S ANSWER IS NO RECEIPT for session ${expected.session} from entry ${String(expected.from)} on (${reason}: ${why}). Nothing counts as shipped, everything is kept here, the answer too: ${kept}. Ask who runs the vault before you go on`,
    { session: expected.session, entry: expected.from, reason },
  );
}

const EXPLAINED: Record<string, string> = {
  'bad-receipt': 'it has not the form of one',
  'bad-signature': 'it is not signed by the key that was pinned when this machine was enrolled',
  'wrong-origin': 'its leaf is of another log',
  'bad-inclusion': 'its leaf is not in the tree that the vault signed',
  'bad-machine-signature': "it carries no good signature of the machine's",
  'no-quorum': 'too few of the witnesses have cosigned',
};
