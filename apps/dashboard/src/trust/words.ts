import type { CheckpointReason, CheckpointResult } from '../worker/protocol.js';

const grouped = (count: number) => count.toLocaleString('en');

/** What is wrong with a checkpoint: the short name that a badge bears, and what it means. */
export function checkpointWords(result: CheckpointResult): { short: string; means: string } {
  const before = grouped(result.before?.size ?? 0);
  const now = grouped(result.size ?? 0);
  const reasons: Record<CheckpointReason, { short: string; means: string }> = {
    'bad-key': { short: 'bad-key', means: 'The pinned text is no verifier key of a vault. Pin it again.' },
    'bad-checkpoint': { short: 'bad-checkpoint', means: 'What the vault sent is no checkpoint.' },
    'wrong-origin': {
      short: 'wrong-origin',
      means: `The checkpoint is of the log ${result.origin ?? ''}, not of the one you pinned.`,
    },
    'bad-signature': { short: 'bad-signature', means: 'The checkpoint is not signed by the key you pinned.' },
    shrank: {
      short: `log shrank to ${now}`,
      means: `This browser saw ${before} leaves; the vault now shows ${now}. A log only grows: this is another one, or it was cut.`,
    },
    split: {
      short: `split view at ${now}`,
      means: `The vault signed two different trees of ${now} leaves: one that this browser saw, and this one.`,
    },
    'not-consistent': {
      short: `fork after ${before}`,
      means: `The tree of ${now} leaves does not begin with the tree of ${before} that this browser saw.`,
    },
  };
  return reasons[result.reason ?? 'bad-checkpoint'];
}

/** A verifier key as it is named: `vault.example/acme+3f9a61c2`. */
export function keyName(vkey: string): string {
  return vkey.split('+').slice(0, 2).join('+');
}
