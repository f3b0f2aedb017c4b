import { DetachError, detachValues, SecretMemory } from '@nd7/detach';
import type { DetachRules } from '@nd7/detach';
import { formatTime } from '@nd7/entry';
import type { Random } from '@nd7/entry';
import type { HookReading } from '@nd7/hooks';
import { readBlob } from '@nd7/journal';
import type { Home, JournalDraft } from '@nd7/journal';
import { lastEntries } from './firing.js';

export type { JournalDraft };

/** Makes the entry draft of a payload: what is secret or too large is detached. `took` is when the recorder took it, ms. */
export type DraftMaker = (reading: HookReading, peer: Record<string, unknown>, took: number) => JournalDraft;

/** An entry of the recorder about itself. */
export function recorderDraft(took: number, kind: string, data: Record<string, unknown>): JournalDraft {
  return { time: formatTime(took), source: 'recorder:nd7', kind, data: JSON.stringify(data) };
}

/** The maker of one session: a secret it has seen once is found again wherever else it stands. */
export function draftMaker(options: { memory: SecretMemory; rules(): DetachRules; random: Random }): DraftMaker {
  const detach = (data: string, rules: DetachRules) =>
    detachValues(data, { memory: options.memory, rules, random: options.random });
  return (reading, peer, took) => {
    const draft = { time: formatTime(took), source: reading.source, kind: reading.kind, peer };
    const rules = options.rules();
    if (reading.readable) {
      try {
        return withDetached(draft, detach(reading.data, rules));
      } catch (error) {
        if (!(error instanceof DetachError)) throw error;
        // What cannot stand as an object stands as its bytes.
        const wrapped = {
          unreadable: { reason: error.code, bytes: Buffer.byteLength(reading.data) },
          raw_base64: Buffer.from(reading.data).toString('base64'),
        };
        const held = holdsSecret(reading.data, rules, detach) ? hold(rules) : rules;
        return withDetached(
          { ...draft, peer: { ...peer, problem: error.code } },
          detach(JSON.stringify(wrapped), held),
        );
      }
    }
    const { raw_base64: raw } = JSON.parse(reading.data) as { raw_base64: string };
    const text = Buffer.from(raw, 'base64').toString('utf8');
    return withDetached(draft, detach(reading.data, holdsSecret(text, rules, detach) ? hold(rules) : rules));
  };
}

type Detach = (data: string, rules: DetachRules) => ReturnType<typeof detachValues>;

function withDetached(
  draft: Omit<JournalDraft, 'data' | 'detached' | 'blobs'>,
  kept: ReturnType<typeof detachValues>,
): JournalDraft {
  return kept.detached.length === 0
    ? { ...draft, data: kept.data }
    : { ...draft, data: kept.data, detached: kept.detached, blobs: kept.blobs };
}

/** Rules do not see through base64: raw bytes in which they would find something are held back whole. */
function holdsSecret(text: string, rules: DetachRules, detach: Detach): boolean {
  return detach(JSON.stringify({ text }), rules).detached.some(({ why }) => why === 'secret' || why === 'policy');
}

function hold(rules: DetachRules): DetachRules {
  return { ...rules, pointers: [...(rules.pointers ?? []), '/raw_base64'] };
}

/** A memory filled with the secrets that the end of a session's log had detached, so that a process begun later finds them again. */
export async function rememberSecrets(home: Home, session: string): Promise<SecretMemory> {
  const memory = new SecretMemory();
  for (const view of lastEntries(home, session, '"why":"secret"'))
    for (const { why, shown, blake3 } of view.detached ?? []) {
      if (why !== 'secret' || shown === undefined) continue;
      const blob = await readBlob(home, blake3).catch(() => 'missing' as const);
      if (typeof blob === 'object') memory.recall(Buffer.from(blob.value).toString('utf8'), shown);
    }
  return memory;
}
