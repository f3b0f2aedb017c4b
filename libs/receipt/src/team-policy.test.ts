import fc from 'fast-check';
import { generateKeyPair } from '@nd7/signing';
import { fromHex, toBase64, utf8 } from '@nd7/entry';
import {
  formatNote,
  formatVkey,
  keyId,
  parseCheckpoint,
  parseNote,
  parseVkey,
  signatureLine,
  type VerifierKey,
} from '@nd7/tlog';
import { checkTeamPolicy, formatTeamPolicy, parseTeamPolicy } from './team-policy.js';

const ORIGIN = 'vault.test/acme';
const HASH = 'ab'.repeat(32);
const pairOf = (origin = ORIGIN) => {
  const pair = generateKeyPair();
  const bytes = fromHex(pair.publicKey) as Uint8Array;
  const key = parseVkey(formatVkey(origin, 1, bytes)) as VerifierKey;
  const sign = (text: string, name = origin): string =>
    formatNote(text, [signatureLine(name, keyId(name, 1, bytes), pair.sign(utf8(text)))]);
  return { key, sign };
};
const statement = { origin: ORIGIN, version: 7, policySha256: HASH };

describe('a team policy that a vault signs', () => {
  const { key, sign } = pairOf();
  const pinned = { origin: ORIGIN, key };

  it('is a note that says of which team, the how many-th, and which bytes; and no checkpoint', () => {
    const text = formatTeamPolicy(statement);
    expect(text).toBe(`vault.test/acme\nnd7/team-policy/v1\nversion 7\npolicy ${HASH}\n`);
    expect(parseTeamPolicy(text)).toEqual(statement);
    expect(parseCheckpoint(text)).toBeUndefined();
    expect(checkTeamPolicy(sign(text), HASH, pinned)).toEqual(statement);
    for (const bad of [{ version: 0 }, { version: 1.5 }, { origin: 'x' }, { policySha256: 'aa' }])
      expect(() => formatTeamPolicy({ ...statement, ...bad })).toThrow(RangeError);
  });

  it('does not stand by another key, of another team, for other bytes, or with a bad line of the key beside a good one', () => {
    const text = formatTeamPolicy(statement);
    const other = pairOf();
    expect(checkTeamPolicy(other.sign(text), HASH, pinned)).toEqual({ fault: 'bad-signature' });
    expect(checkTeamPolicy(sign(text), 'cd'.repeat(32), pinned)).toEqual({ fault: 'other-bytes' });
    const elsewhere = formatTeamPolicy({ ...statement, origin: 'vault.test/other' });
    expect(checkTeamPolicy(sign(elsewhere), HASH, pinned)).toEqual({ fault: 'wrong-origin' });
    expect(checkTeamPolicy(sign(text).replace('version 7', 'version 9'), HASH, pinned)).toEqual({
      fault: 'bad-signature',
    });
    const line = parseNote(sign(text))?.signatures[0]?.line ?? '';
    const broken = signatureLine(ORIGIN, key.id, new Uint8Array(64));
    expect(checkTeamPolicy(formatNote(text, [line, broken]), HASH, pinned)).toEqual({ fault: 'bad-signature' });
    expect(
      checkTeamPolicy(formatNote(text, [line, `— someone ${toBase64(new Uint8Array(68))}`]), HASH, pinned),
    ).toEqual(statement);
    // What the same key signs of its log is not taken for a policy.
    expect(checkTeamPolicy(sign(`${ORIGIN}\n4\n${toBase64(new Uint8Array(32))}\n`), HASH, pinned)).toEqual({
      fault: 'bad-note',
    });
  });

  it('takes any text without failing, and no text that differs by one character', () => {
    const note = sign(formatTeamPolicy(statement));
    fc.assert(
      fc.property(fc.nat(note.length - 1), fc.string({ maxLength: 3, unit: 'binary' }), (at, text) => {
        const changed = note.slice(0, at) + text + note.slice(at + 1);
        const verdict = checkTeamPolicy(changed, HASH, pinned);
        if (changed !== note) expect('fault' in verdict || changed.length > note.length).toBe(true);
        checkTeamPolicy(text, text, pinned);
      }),
    );
  });
});
