/**
 * What a vault signs: statements (the leaves of its log) and receipts (a leaf, its inclusion proof, a signed checkpoint), to docs/receipt.md.
 *
 * It promises: exact grammar both ways, each check in the order of the table with its own reason, verdicts as values, no exception on any input.
 * It does not walk a log (`@nd7/chain` does) and does not say "verified" (`@nd7/verify` does). Called by the vault, the shipper and the verifier.
 */
export { formatStatement, parseStatement, rotateMessage, statementItems } from './statement-text.js';
export type {
  CloseStatement,
  EnrolStatement,
  ForkClaim,
  ForkStatement,
  HeadStatement,
  OpenStatement,
  RevokeStatement,
  RotateStatement,
  SignerState,
  SignerStatement,
  Statement,
  UnknownStatement,
} from './statement.js';
export { formatReceipt, indexOf, parseReceipt } from './receipt.js';
export type { Receipt } from './receipt.js';
export { checkReceiptAgainst, checkReceiptItself } from './check.js';
export type { LogFacts, ReceiptReason, ReceiptVerdict, Trust } from './check.js';
export { checkTeamPolicy, formatTeamPolicy, parseTeamPolicy } from './team-policy.js';
export type { TeamPolicyFault, TeamPolicyStatement } from './team-policy.js';
