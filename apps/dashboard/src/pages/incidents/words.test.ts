import { describe, expect, it } from '@jest/globals';
import type { Incident } from '@nd7/vault-api';
import { incidentSentence, isCritical, overSentence, seenRows } from './words.js';

const base: Incident = {
  id: 'i_1',
  kind: 'fork',
  machine: 'a'.repeat(64),
  at: '2026-11-29T19:41:00.000Z',
  state: 'open',
};

describe('what an incident is called', () => {
  it.each([
    'fork',
    'disagrees',
    'machine-quiet',
    'session-quiet',
    'session-unclosed',
    'tail-shrank',
    'clock-disagrees',
    'alarm',
  ])('%s has a sentence of its own', (kind) => {
    const sentence = incidentSentence({ ...base, kind }, 'Ada’s laptop');
    expect(sentence).toContain('Ada’s laptop');
    expect(sentence).not.toContain(`: ${kind}`);
    expect(isCritical({ ...base, kind })).toBe(kind === 'fork');
  });

  it('is the kind itself where a newer vault has one that this page does not know', () => {
    expect(incidentSentence({ ...base, kind: 'eclipse' }, 'box')).toBe('box: eclipse');
  });
});

describe('how an incident ended', () => {
  it.each(['heard', 'slept', 'revoked', 'shipped', 'closed', 'resumed', 'listed', 'forked', 'agrees', 'regrown'])(
    '%s is said in words',
    (why) => {
      expect(overSentence({ at: base.at, why }).length).toBeGreaterThan(why.length);
    },
  );

  it.each(['eclipse', 'constructor', '__proto__'])('%s, which this page does not know, is shown as it is', (why) => {
    expect(overSentence({ at: base.at, why })).toBe(why);
  });
});

it('what was seen is shown as far as the vault says it', () => {
  expect(seenRows(base)).toEqual([]);
  expect(seenRows({ ...base, seen: { entries: 3, was: 1200, off_by_ms: -200_400 } })).toEqual([
    ['Entries named', '3'],
    ['Entries before', '1,200'],
    ['Off by', '200 s, behind the vault’s'],
  ]);
  expect(seenRows({ ...base, seen: { off_by_ms: 97_000 } })).toEqual([['Off by', '97 s, ahead of the vault’s']]);
});
