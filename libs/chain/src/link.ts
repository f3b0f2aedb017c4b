import { blake3Hex } from '@nd7/blake3';
import { isSessionId, utf8 } from '@nd7/entry';
import { ChainError } from './error.js';

/** Why a log is broken, in the order in which the checks are made (docs/format.md, "The verdict"). */
export type LogReason =
  | 'too-long'
  | 'torn-tail'
  | 'not-utf8'
  | 'bad-json'
  | 'duplicate-key'
  | 'unsupported-version'
  | 'bad-prefix'
  | 'wrong-seq'
  | 'wrong-genesis'
  | 'wrong-prev'
  | 'bad-seal'
  | 'truncated'
  | 'head-mismatch'
  | 'receipt-mismatch';

/** The link that entry 0 must carry: it binds a chain to its session. Throws `bad-session` for what is no session id. */
export function genesis(session: string): string {
  if (!isSessionId(session)) {
    throw new ChainError('bad-session', `not a session id: ${JSON.stringify(session.slice(0, 200))}`);
  }
  return blake3Hex(utf8(`nd7 session v1\n${session}\n`));
}

/** What the machine key signs to certify a session's first key (64 hex). */
export function certMessage(session: string, key: string): Uint8Array {
  return utf8(`nd7-session/v1\n${session}\n${key}\n`);
}

/** What the key in force signs in a seal: the seal's own place in the chain and the key that follows. */
export function sealMessage(session: string, seq: number | string, prev: string, next: string): Uint8Array {
  return utf8(`nd7-seal/v1\n${session}\n${String(seq)}\n${prev}\n${next}\n`);
}
