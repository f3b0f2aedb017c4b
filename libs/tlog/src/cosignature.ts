import { fromHex, utf8 } from '@nd7/entry';
import { concat, readUint, writeUint } from './bytes.js';
import type { SignatureVerifier } from './ed25519.js';
import type { Note, Signer, VerifierKey } from './note.js';
import { keyId, signatureLine } from './note.js';

/** A witness's good cosignature: it has seen this tree extend every earlier one, at that time. */
export interface Cosignature {
  by: VerifierKey;
  /** Seconds since the epoch. */
  time: number;
}

const MAX_TIME = 2n ** 63n - 1n;

/** What a cosignature/v1 signs: the text of the checkpoint's note under the time in seconds (C2SP tlog-cosignature). */
export function cosignatureMessage(noteText: string, time: number | bigint): Uint8Array {
  return utf8(`cosignature/v1\ntime ${String(time)}\n${noteText}`);
}

/** A witness's signature line (without "\n") for the text of a checkpoint's note. `time`: whole seconds since the epoch. */
export async function cosign(noteText: string, name: string, signer: Signer, time: number): Promise<string> {
  const key = fromHex(signer.publicKey);
  if (key === undefined || !Number.isSafeInteger(time) || time < 0)
    throw new RangeError('a cosignature needs a key and whole seconds');
  const signature = await signer.sign(cosignatureMessage(noteText, time));
  return signatureLine(name, keyId(name, 4, key), concat(writeUint(BigInt(time), 8), signature));
}

/**
 * The good cosignatures by `witnesses` (type 4). A bad one counts as none: unlike a bad signature of the log's own key it says nothing
 * against the checkpoint, for anybody can write one.
 */
export async function verifyCosignatures(
  note: Note,
  witnesses: readonly VerifierKey[],
  verify: SignatureVerifier,
): Promise<Cosignature[]> {
  const found: { by: VerifierKey; time: bigint; signature: Uint8Array }[] = [];
  const seen = new Set<string>();
  for (const by of witnesses) {
    if (by.type !== 4) continue;
    for (const { name, id, signature, line } of note.signatures) {
      const once = `${by.text}\n${line}`;
      if (name !== by.name || id !== by.id || signature.length !== 72 || seen.has(once)) continue;
      seen.add(once);
      const time = readUint(signature.subarray(0, 8));
      if (time <= MAX_TIME) found.push({ by, time, signature: signature.subarray(8) });
    }
  }
  const verdicts = await verify(
    found.map(({ by, time, signature }) => ({ key: by.key, message: cosignatureMessage(note.text, time), signature })),
  );
  return found.flatMap(({ by, time }, i) => (verdicts[i] === true ? [{ by, time: Number(time) }] : []));
}
