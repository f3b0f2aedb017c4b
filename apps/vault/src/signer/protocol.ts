// What goes over the signer's socket: one JSON object a line, answers in the order of the requests of a connection. Roots, hashes as base64.
import { fromBase64, toBase64 } from '@nd7/entry';
import { refuse, type Refusal, type SignAnswer, type SignerState, type SignRequest, type TreeHead } from './signer.js';

/** A request has at most 63 hashes; nothing legitimate comes near this. */
export const MAX_MESSAGE = 16_384;

export type SignerRequest =
  { op: 'state'; origin: string } | { op: 'provision'; origin: string } | ({ op: 'sign' } & SignRequest);

const REFUSALS: readonly string[] = [
  'behind',
  'fork',
  'not-consistent',
  'no-key',
  'no-state',
  'failed',
  'bad-request',
] satisfies Refusal[];

export function formatRequest(request: SignerRequest): string {
  const { op, origin } = request;
  const body =
    op === 'sign'
      ? { op, origin, size: request.size, root: toBase64(request.root), proof: request.proof.map(toBase64) }
      : { op, origin };
  return `${JSON.stringify(body)}\n`;
}

/** Undefined for anything that `formatRequest` would not write: the other side is the vault, which may be owned. */
export function parseRequest(line: string): SignerRequest | undefined {
  const value = parseObject(line);
  const { op, origin, size, proof } = value ?? {};
  if (typeof origin !== 'string' || origin.length > 128) return undefined;
  if (op === 'state' || op === 'provision') return { op, origin };
  const root = bytes(value?.['root']);
  if (op !== 'sign' || typeof size !== 'number' || root === undefined || !Array.isArray(proof)) return undefined;
  const hashes = proof.map(bytes);
  return hashes.every((hash) => hash !== undefined) ? { op, origin, size, root, proof: hashes } : undefined;
}

export function formatAnswer(answer: SignAnswer | SignerState): string {
  const last =
    'last' in answer && answer.last !== undefined
      ? { last: { size: answer.last.size, root: toBase64(answer.last.root) } }
      : {};
  return `${JSON.stringify({ ...answer, ...last })}\n`;
}

/** An answer to `sign` has lines, one to `state` and `provision` has vkeys; anything else is a refusal that says so. */
export function parseAnswer(line: string): {
  lines?: string[];
  vkeys?: string[];
  last?: TreeHead;
  refused?: ReturnType<typeof refuse>;
} {
  const value = parseObject(line) ?? {};
  const last = headOf(value['last']);
  if (value['ok'] === true) {
    const [lines, vkeys] = [texts(value['lines']), texts(value['vkeys'])];
    return {
      ...(lines === undefined ? {} : { lines }),
      ...(vkeys === undefined ? {} : { vkeys }),
      ...(last === undefined ? {} : { last }),
    };
  }
  const [refusal, message] = [value['refusal'], value['message']];
  if (typeof refusal === 'string' && REFUSALS.includes(refusal) && typeof message === 'string')
    return { refused: refuse(refusal as Refusal, message, last) };
  return { refused: refuse('bad-request', 'the signer gave an answer that is none') };
}

function headOf(value: unknown): TreeHead | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  const { size, root } = value as { size?: unknown; root?: unknown };
  const hash = bytes(root);
  return typeof size === 'number' && Number.isSafeInteger(size) && hash?.length === 32
    ? { size, root: hash }
    : undefined;
}

function parseObject(line: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(line);
    return typeof value === 'object' && value !== null && !Array.isArray(value)
      ? (value as Record<string, unknown>)
      : undefined;
  } catch {
    return undefined;
  }
}

function bytes(value: unknown): Uint8Array | undefined {
  return typeof value === 'string' ? fromBase64(value) : undefined;
}

function texts(value: unknown): string[] | undefined {
  return Array.isArray(value) && value.every((one) => typeof one === 'string') ? value : undefined;
}
