import { fromHex, utf8 } from '@nd7/entry';
import { nobleVerifier, type SignatureVerifier, strictVerifier } from '@nd7/tlog';

/** RFC 8032 section 7.1, test 2: whether this browser's WebCrypto does Ed25519 is asked by having it check one. */
const SAMPLE = {
  key: '3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c',
  message: '72',
  signature:
    '92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00',
};

const bytes = (hex: string) => fromHex(hex) ?? utf8('');

/** Up to this many imported keys are kept; a session's keys are used once each. */
const KEPT = 64;
const imported = new Map<string, Promise<CryptoKey | undefined>>();

function importKey(subtle: SubtleCrypto, key: Uint8Array): Promise<CryptoKey | undefined> {
  const name = String.fromCharCode(...key);
  const known = imported.get(name);
  if (known !== undefined) return known;
  if (imported.size >= KEPT) imported.clear();
  const made = subtle.importKey('raw', owned(key), 'Ed25519', false, ['verify']).catch(() => undefined);
  imported.set(name, made);
  return made;
}

/** WebCrypto wants bytes that no other thread can change. */
function owned(view: Uint8Array): Uint8Array<ArrayBuffer> {
  return view.buffer instanceof ArrayBuffer ? (view as Uint8Array<ArrayBuffer>) : new Uint8Array(view);
}

function webCrypto(subtle: SubtleCrypto): SignatureVerifier {
  return (items) =>
    Promise.all(
      items.map(async ({ key, message, signature }) => {
        const usable = await importKey(subtle, key);
        if (usable === undefined) return false;
        return subtle.verify('Ed25519', usable, owned(signature), owned(message)).catch(() => false);
      }),
    );
}

/** The strict verifier of this browser: WebCrypto behind the pre-checks, else noble's points. The verdicts are the same. */
export async function browserVerifier(): Promise<{ verify: SignatureVerifier; kind: 'webcrypto' | 'noble' }> {
  // Undefined where the page is not a secure context, whatever the types say.
  const subtle = globalThis.crypto.subtle as SubtleCrypto | undefined;
  if (subtle !== undefined) {
    const raw = webCrypto(subtle);
    const sample = { key: bytes(SAMPLE.key), message: bytes(SAMPLE.message), signature: bytes(SAMPLE.signature) };
    const other = { ...sample, message: bytes('73') };
    const [good, bad] = await raw([sample, other]);
    if (good === true && bad === false) return { verify: strictVerifier(raw), kind: 'webcrypto' };
  }
  return { verify: nobleVerifier, kind: 'noble' };
}
