import { fromBase64, fromHex, toBase64, toHex, utf8 } from '@nd7/entry';
import { sha256 } from '@noble/hashes/sha2.js';
import { concat, readUint, writeUint } from './bytes.js';
import type { SignatureVerifier } from './ed25519.js';

/** A C2SP verifier key: `name+hex8(id)+base64(type‖key)`. Type 1 signs notes, type 4 cosigns checkpoints. */
export interface VerifierKey {
  name: string;
  /** Four bytes of SHA-256(name ‖ "\n" ‖ type ‖ key), big-endian: a short name of the key, no proof of it. */
  id: number;
  type: 1 | 4;
  /** The 32 bytes of an Ed25519 public key, not checked to be a point: the verifier refuses what is none. */
  key: Uint8Array;
  /** As it was written. */
  text: string;
}

/** One line under a note, its base64 taken apart: the key it names and the signature's bytes (any length above 0). */
export interface NoteSignature {
  name: string;
  id: number;
  signature: Uint8Array;
  /** The line as it stands, without its "\n". */
  line: string;
}

/** A C2SP signed note, taken apart and NOT verified: `text` ends in "\n" and is what the signatures speak of. */
export interface Note {
  text: string;
  signatures: NoteSignature[];
}

/** Whoever holds a private key. Where the key lives is the signer's business. */
export interface Signer {
  /** 64 hex. */
  publicKey: string;
  sign(message: Uint8Array): Uint8Array | Promise<Uint8Array>;
}

const KEY_NAME = '[!-*,-~]+'; // printable ASCII without space and "+"
const VKEY = new RegExp(`^(${KEY_NAME})\\+([0-9a-f]{8})\\+([A-Za-z0-9+/]{44})$`);
const SIGNATURE_LINE = new RegExp(`^\u2014 (${KEY_NAME}) ([A-Za-z0-9+/]+={0,2})$`);
// Control characters and halves of surrogate pairs: no signed note holds them (C2SP signed-note, "Format").
const FORBIDDEN = /[\u0000-\u0009\u000b-\u001f\ud800-\udfff]/u;

/** The id of a key under a name (C2SP signed-note, "Signatures"). */
export function keyId(name: string, type: 1 | 4, key: Uint8Array): number {
  return Number(readUint(sha256(concat(utf8(`${name}\n`), Uint8Array.of(type), key)).subarray(0, 4)));
}

/** Reads a verifier key of type 1 or 4 whose id is the key's; anything else is undefined. */
export function parseVkey(text: string): VerifierKey | undefined {
  const match = VKEY.exec(text);
  const [, name, idText, encoded] = match ?? [];
  if (name === undefined || idText === undefined || encoded === undefined) return undefined;
  const [id, body] = [fromHex(idText), fromBase64(encoded)];
  if (id === undefined || body?.length !== 33) return undefined;
  const type = body[0];
  if (type !== 1 && type !== 4) return undefined;
  const key = body.slice(1);
  const number = Number(readUint(id));
  return keyId(name, type, key) === number ? { name, id: number, type, key, text } : undefined;
}

/** The verifier key's text. Throws a RangeError for a name that no note could carry, or a key that is not 32 bytes. */
export function formatVkey(name: string, type: 1 | 4, key: Uint8Array): string {
  if (!new RegExp(`^${KEY_NAME}$`).test(name)) throw new RangeError(`not a key name: ${JSON.stringify(name)}`);
  if (key.length !== 32) throw new RangeError(`an Ed25519 public key has 32 bytes, not ${String(key.length)}`);
  return `${name}+${toHex(writeUint(BigInt(keyId(name, type, key)), 4))}+${toBase64(concat(Uint8Array.of(type), key))}`;
}

/** Takes a signed note apart at its last empty line; undefined where it is none. Any text is safe to hand in. */
export function parseNote(note: string): Note | undefined {
  const cut = note.lastIndexOf('\n\n');
  if (cut < 0 || !note.endsWith('\n') || FORBIDDEN.test(note)) return undefined;
  const text = note.slice(0, cut + 1);
  const lines = note.slice(cut + 2, -1).split('\n');
  const signatures: NoteSignature[] = [];
  for (const line of lines) {
    const match = SIGNATURE_LINE.exec(line);
    const [, name, encoded] = match ?? [];
    const raw = encoded === undefined ? undefined : fromBase64(encoded);
    if (name === undefined || raw === undefined || raw.length < 5) return undefined;
    signatures.push({ name, id: Number(readUint(raw.subarray(0, 4))), signature: raw.slice(4), line });
  }
  return { text, signatures };
}

/** A note from its text (ending in "\n") and its signature lines (without their "\n"). */
export function formatNote(text: string, lines: readonly string[]): string {
  if (!text.endsWith('\n')) throw new RangeError('the text of a note ends in a line feed');
  if (lines.length === 0) throw new RangeError('a note has at least one signature line');
  return `${text}\n${lines.map((line) => `${line}\n`).join('')}`;
}

/** One signature line, without its "\n". */
export function signatureLine(name: string, id: number, signature: Uint8Array): string {
  return `\u2014 ${name} ${toBase64(concat(writeUint(BigInt(id), 4), signature))}`;
}

/** The whole note: `text` signed (type 1) under `name`. */
export async function signNote(text: string, name: string, signer: Signer): Promise<string> {
  const key = fromHex(signer.publicKey);
  if (key === undefined) throw new RangeError('the signer has no public key');
  return formatNote(text, [signatureLine(name, keyId(name, 1, key), await signer.sign(utf8(text)))]);
}

/** Who signed a note, of the keys asked for. */
export interface NoteVerdict {
  /** Keys with a good line, each once. */
  good: VerifierKey[];
  /** Keys with a line that names them and does not verify: such a note is to be refused, whatever else it carries. */
  bad: VerifierKey[];
}

/**
 * Checks the lines that name one of `keys` (type 1; by name AND id); all others are ignored, as C2SP signed-note says. The note
 * stands only where `bad` is empty and `good` holds a key that the caller wants.
 */
export async function verifyNote(
  note: Note,
  keys: readonly VerifierKey[],
  verify: SignatureVerifier,
): Promise<NoteVerdict> {
  const message = utf8(note.text);
  const known: { by: VerifierKey; signature: Uint8Array }[] = [];
  const seen = new Set<string>();
  for (const by of keys) {
    if (by.type !== 1) continue;
    for (const { name, id, signature, line } of note.signatures) {
      // A line repeated a thousand times is checked once.
      const once = `${by.text}\n${line}`;
      if (name !== by.name || id !== by.id || seen.has(once)) continue;
      seen.add(once);
      known.push({ by, signature });
    }
  }
  const verdicts = await verify(known.map(({ by, signature }) => ({ key: by.key, message, signature })));
  const good = new Set<VerifierKey>();
  const bad = new Set<VerifierKey>();
  known.forEach(({ by }, i) => (verdicts[i] === true ? good : bad).add(by));
  return { good: [...good], bad: [...bad] };
}
