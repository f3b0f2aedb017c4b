import type { CheckpointResult, ForkResult, InclusionResult, SessionResult } from '../worker/protocol.js';

declare const stamped: unique symbol;

/** Something that the checking worker made in this visit. There is no other way to get one than `stamp`, which the worker's client calls. */
export type Proof<T extends object> = T & { readonly [stamped]: true };

export type AnyProof = Proof<SessionResult> | Proof<CheckpointResult> | Proof<InclusionResult> | Proof<ForkResult>;

const made = new WeakSet();

/** Marks what came out of the worker. Called by `worker-client.ts` alone; a test greps for other callers. */
export function stamp<T extends object>(value: T): Proof<T> {
  made.add(value);
  return value as Proof<T>;
}

/** Whether the worker made this very object in this visit: nothing kept, copied or sent by a vault passes. */
export function isProof(value: object): boolean {
  return made.has(value);
}

/** What can be said in green of each kind of proof. */
export type Claim =
  | 'integrity'
  | 'completeness'
  | 'authenticity'
  | 'freshness' // the four verdicts of a session
  | 'covered' // an intact log whose entries a receipt covers, all or up to some entry
  | 'seals'
  | 'checkpoint' // signed by the pinned key and not contradicting what this browser saw
  | 'consistency'
  | 'inclusion'
  | 'signed-root'
  | 'fork'
  | 'claim-a'
  | 'claim-b'
  | { entry: number } // a receipt that holds covers this entry, whatever comes after it
  | { receipt: number } // this receipt of the report holds
  | { seal: number }; // this seal follows from a first key that a receipt pins

/** Whether the proof, made by the worker in this visit, carries the claim. Everything green on the page asks here. */
export function proves(proof: AnyProof | undefined, claim: Claim): boolean {
  if (proof === undefined || !isProof(proof)) return false;
  switch (proof.kind) {
    case 'session':
      return sessionProves(proof, claim);
    case 'checkpoint':
      if (claim === 'consistency') return proof.ok && proof.against !== 'unproved';
      return claim === 'checkpoint' && proof.ok && proof.against !== 'unproved';
    case 'inclusion':
      return proof.ok && (claim === 'inclusion' || claim === 'signed-root');
    case 'fork':
      if (claim === 'claim-a') return proof.signatures[0];
      if (claim === 'claim-b') return proof.signatures[1];
      return claim === 'fork' && proof.ok;
  }
}

function sessionProves({ report }: SessionResult, claim: Claim): boolean {
  if (typeof claim === 'object') {
    if ('entry' in claim) return claim.entry < coveredBy(report);
    if ('receipt' in claim) return report.receipts[claim.receipt]?.result === 'holds';
    return (
      report.seals.first_key === 'pinned' && report.seals.sealed_to !== null && claim.seal <= report.seals.sealed_to
    );
  }
  switch (claim) {
    case 'integrity':
    case 'completeness':
    case 'authenticity':
    case 'freshness':
      return report[claim].state === 'good';
    case 'covered':
      return report.verdict === 'intact' && report.authenticity.state === 'good' && coveredBy(report) > 0;
    case 'seals':
      return report.verdict === 'intact' && report.seals.seals > 0 && report.seals.first_key === 'pinned';
    default:
      return false;
  }
}

/** How many entries a receipt that holds covers. */
export function coveredBy(report: SessionResult['report']): number {
  const reached = report.receipts.map((receipt) => (receipt.result === 'holds' ? (receipt.to ?? 0) : 0));
  return Math.min(report.entries, Math.max(0, ...reached));
}
