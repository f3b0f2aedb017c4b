/** Which incidents are listed, as it stands in the address; without it all are. */
export interface IncidentsSearch {
  state?: 'open' | 'over' | undefined;
}

/** Reads the address; what is not known is left out. */
export function readIncidentsSearch(raw: Record<string, unknown>): IncidentsSearch {
  const { state } = raw;
  return state === 'open' || state === 'over' ? { state } : {};
}
