import type { SessionReport, Verdict } from '@nd7/verify';
import type { SessionResult } from '../worker/protocol.js';
import { headline } from './headline.js';
import { type Claim, coveredBy, isProof, proves, stamp } from './proofs.js';

const good = (verdict: string): Verdict => ({ state: 'good', verdict, text: '', rests_on: [] });

function report(change: Partial<SessionReport> = {}): SessionReport {
  return {
    report: 'nd7/report/v1',
    session: 's',
    verdict: 'intact',
    entries: 1061,
    head: '',
    lines: 1061,
    bytes: 1,
    integrity: good('Unchanged'),
    completeness: good('Complete'),
    authenticity: good('Signed by x'),
    freshness: good('1 s old'),
    receipts: [
      { from: 0, to: 1024, result: 'holds' },
      { from: 1024, to: 1061, result: 'holds' },
    ],
    seals: { sealed_to: 1060, tail: 0, seals: 31, first_key: 'pinned' },
    classes: { intent: 0, effect: 0, decision: 0, recorder: 0, unclassified: 0 },
    rests_on: [],
    not_checked: [],
    ...change,
  };
}

describe('the verdict as a sentence', () => {
  it.each([
    [report(), false, 'Unchanged, complete and signed: all 1,061 entries'],
    [
      report({ completeness: good('Complete to 1,061') }),
      true,
      'Unchanged and signed: all 1,061 entries so far; still open',
    ],
    [
      report({ completeness: good('Complete to 1,061') }),
      false,
      'Unchanged and signed: all 1,061 entries; its end was not recorded',
    ],
    [
      report({ receipts: [{ from: 0, to: 1024, result: 'holds' }] }),
      true,
      'Unchanged and signed: the first 1,024 entries; still open, so 37 later entries are not covered',
    ],
    [
      report({ receipts: [{ from: 0, to: 1060, result: 'holds' }] }),
      false,
      'Unchanged and signed: the first 1,060 entries; 1 later entry is not covered',
    ],
    [
      report({ receipts: [{ result: 'not-checked' }] }),
      false,
      'Unchanged by its own links; no signature you pinned stands behind 1,061 entries',
    ],
    [
      report({
        receipts: [{ result: 'bad-signature' }],
        authenticity: { ...good('Not signed by a key you pinned'), state: 'bad' },
      }),
      false,
      'Unchanged by its own links, but not signed by a key you pinned',
    ],
    [
      report({
        verdict: 'broken',
        reason: 'wrong-prev',
        bad_entry: 6,
        integrity: { ...good('Changed at entry 6'), state: 'bad' },
      }),
      false,
      'Changed at entry 6: wrong-prev',
    ],
    [
      report({
        verdict: 'broken',
        reason: 'truncated',
        bad_entry: 6,
        completeness: { ...good('12 missing'), state: 'bad' },
      }),
      false,
      '12 missing: a receipt counts more entries than are here',
    ],
    [report({ entries: 0, receipts: [] }), false, 'No entry yet: there is nothing to check'],
  ])('%#', (one, isOpen, sentence) => {
    expect(headline(one, isOpen)).toBe(sentence);
  });
});

describe('proofs', () => {
  const result = (change: Partial<SessionReport> = {}): SessionResult => ({
    kind: 'session',
    report: report(change),
    at: 0,
    bytes: 1,
    took_ms: 1,
    signatures: 'webcrypto',
    vkeys: [],
  });
  const claims: Claim[] = [
    'integrity',
    'completeness',
    'authenticity',
    'freshness',
    'covered',
    'seals',
    { entry: 3 },
    { receipt: 0 },
    { seal: 1 },
  ];

  it('carry what the report says is good', () => {
    const proof = stamp(result());
    expect(claims.filter((claim) => !proves(proof, claim))).toEqual([]);
    expect(proves(proof, 'checkpoint')).toBe(false);
  });

  it('are nothing when they did not come out of the worker: a copy proves nothing', () => {
    const copy = { ...stamp(result()) } as ReturnType<typeof stamp<SessionResult>>;
    expect(isProof(copy)).toBe(false);
    expect(claims.filter((claim) => proves(copy, claim))).toEqual([]);
    expect(claims.filter((claim) => proves(undefined, claim))).toEqual([]);
  });

  it('carry of a broken log only what a receipt that holds covers', () => {
    const proof = stamp(
      result({
        verdict: 'broken',
        entries: 1030,
        bad_entry: 1030,
        reason: 'wrong-prev',
        receipts: [
          { from: 0, to: 1024, result: 'holds' },
          { from: 1024, to: 1061, result: 'receipt-mismatch' },
        ],
        seals: { sealed_to: 1000, tail: 29, seals: 4, first_key: 'pinned' },
        authenticity: { ...good('Signed by x'), state: 'part' },
      }),
    );
    expect(coveredBy(proof.report)).toBe(1024);
    expect([
      proves(proof, { entry: 1023 }),
      proves(proof, { entry: 1024 }),
      proves(proof, { receipt: 1 }),
      proves(proof, { seal: 1000 }),
      proves(proof, { seal: 1001 }),
      proves(proof, 'covered'),
    ]).toEqual([true, false, false, true, false, false]);
  });

  it('carry of a checkpoint nothing where it was not shown to extend what was seen', () => {
    const checkpoint = { kind: 'checkpoint', ok: true, against: 'unproved' } as const;
    expect(proves(stamp({ ...checkpoint }), 'checkpoint')).toBe(false);
    expect(proves(stamp({ ...checkpoint, against: 'extends' as const }), 'checkpoint')).toBe(true);
    expect(proves(stamp({ ...checkpoint, ok: false, against: 'first' as const }), 'checkpoint')).toBe(false);
  });
});
