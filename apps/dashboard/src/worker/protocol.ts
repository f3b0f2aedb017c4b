import type { SessionReport } from '@nd7/verify';
import type { Row } from './row.js';

/**
 * What page and worker say to each other. The page has the network and no crypto; the worker has the crypto and no network: bytes come in as
 * messages, verdicts go out. Each question bears an id that its answers repeat.
 */
export type Question = { id: number } & (
  | { op: 'session'; input: SessionInput }
  | { op: 'rows' }
  | { op: 'bytes'; chunk: Uint8Array }
  | { op: 'end' }
  | { op: 'stop' }
  | { op: 'checkpoint'; note: string; vkey: string; before?: SeenTree | undefined }
  | { op: 'tile'; path: string; tile: Uint8Array | undefined }
  | { op: 'inclusion'; receipt: Uint8Array; vkeys: readonly string[] }
  | { op: 'fork'; claims: readonly [ForkClaim, ForkClaim] }
  | { op: 'vkey'; text: string }
  | { op: 'hash'; chunk: Uint8Array }
);

export type Answer = { id: number } & (
  | { tell: 'took'; bytes: number }
  | { tell: 'progress'; bytes: number; entries: number }
  | { tell: 'rows'; rows: Row[] }
  | { tell: 'need'; path: string }
  | { tell: 'done'; value: unknown }
  | { tell: 'failed'; message: string }
);

/** A log to verify; its bytes follow as `bytes` messages, then `end`. */
export interface SessionInput {
  session: string;
  /** The bytes of a head.json beside the log; left out, the length rests on receipts alone. */
  head?: Uint8Array | undefined;
  /** As they came, byte for byte. */
  receipts: readonly Uint8Array[];
  /** The verifier keys the reader pinned. */
  vkeys: readonly string[];
  /** Milliseconds since the epoch, for the report's freshness. */
  now: number;
}

/** What is known once a session's bytes have all been read. */
export interface SessionResult {
  kind: 'session';
  report: SessionReport;
  /** When the verdict was made, milliseconds since the epoch. */
  at: number;
  bytes: number;
  /** How long the worker took, waiting for bytes included. */
  took_ms: number;
  /** A head.json was given and is of its form; false where it is none, and then it counted for nothing. */
  head_usable?: boolean;
  /** Which verifier checked the signatures. */
  signatures: 'webcrypto' | 'noble';
  vkeys: readonly string[];
}

/** The last tree this browser accepted of an origin. */
export interface SeenTree {
  size: number;
  /** 64 hex. */
  root: string;
}

export type CheckpointReason =
  | 'bad-key' // the pinned text is no verifier key
  | 'bad-checkpoint' // what the vault sent is no checkpoint
  | 'wrong-origin' // of another log than the key's
  | 'bad-signature'
  | 'shrank' // fewer leaves than this browser saw
  | 'split' // as many leaves, another root
  | 'not-consistent'; // more leaves, and the old tree is not their beginning

/** A checkpoint as this browser judged it. */
export interface CheckpointResult {
  kind: 'checkpoint';
  ok: boolean;
  reason?: CheckpointReason;
  origin?: string;
  size?: number;
  root?: string;
  /** How it stands to the tree seen before: nothing seen, the same, extended by a checked proof, or the tiles could not be had. */
  against: 'first' | 'same' | 'extends' | 'unproved';
  before?: SeenTree;
}

/** One step of an inclusion proof: the sibling given, on which side it stands, the hash it leads to. */
export interface ProofStep {
  side: 'left' | 'right';
  sibling: string;
  gives: string;
}

/** A receipt taken apart and recomputed. */
export interface InclusionResult {
  kind: 'inclusion';
  /** The steps lead to the checkpoint's root, and a pinned key signed that. */
  ok: boolean;
  reason?: string;
  origin?: string;
  index?: number;
  size?: number;
  leaf?: string;
  /** The leaf's statement, as text. */
  statement?: string;
  steps: ProofStep[];
  root?: string;
  signed: boolean;
}

/** A claim of a fork's evidence, whole. */
export interface ForkClaim {
  origin: string;
  machine: string;
  session: string;
  from: number;
  to: number;
  prev: string;
  head: string;
  signature: string;
}

/** Whether two claims convict their machine by themselves. */
export interface ForkResult {
  kind: 'fork';
  /** Both signatures are the machine's and the claims give one count two hashes. */
  ok: boolean;
  signatures: [boolean, boolean];
  count?: number;
  hashes?: [string, string];
}

/** A verifier key's parts. */
export interface VkeyResult {
  kind: 'vkey';
  ok: boolean;
  name?: string;
  /** 8 hex. */
  id?: string;
}
