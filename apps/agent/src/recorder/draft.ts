import { formatTime } from '@nd7/entry';
import type { HookReading } from '@nd7/hooks';
import type { JournalDraft } from '@nd7/journal';

export type { JournalDraft };

/** Makes the entry draft of a payload: what is secret or too large is detached. `took` is when the recorder took it, ms. */
export type DraftMaker = (reading: HookReading, peer: Record<string, unknown>, took: number) => JournalDraft;

/** An entry of the recorder about itself. */
export function recorderDraft(took: number, kind: string, data: Record<string, unknown>): JournalDraft {
  return { time: formatTime(took), source: 'recorder:nd7', kind, data: JSON.stringify(data) };
}

export function draftMaker(): DraftMaker {
  return (reading, peer, took) => ({ time: formatTime(took), source: reading.source, kind: reading.kind, data: reading.data, peer });
}
