/**
 * A segment as it is shipped: the machine's claim about a contiguous run of entries, and the other texts a machine signs towards a vault
 * (docs/receipt.md, "Signed texts": one register, one label each).
 *
 * It promises: exact grammar both ways, exact numbers, no exception on any input, and what a fork is in one function. It verifies no
 * signature and looks at no entry: `@nd7/tlog` and `@nd7/chain` do. Called by the shipper, the vault and `@nd7/receipt`.
 */
export {
  SEGMENT_LABEL,
  claimItem,
  claimLines,
  claimMessage,
  decodeClaimHeaders,
  encodeClaimHeaders,
  hashAt,
  isFork,
  parseClaim,
  signedItem,
} from './claim.js';
export type { Claim, SignedClaim } from './claim.js';
export { closeLines, closeMessage, enrolLines, enrolMessage, openLines, openMessage } from './session.js';
export type { CloseClaim, CloseReason, EnrolClaim, OpenClaim } from './session.js';
export { textOf } from './text.js';
export { REQUEST_WINDOW, parseRequestHeaders, requestMessage, signRequest } from './request.js';
export type { RequestHeaders, RequestSignature } from './request.js';
export { declareContentSize } from './frame.js';
