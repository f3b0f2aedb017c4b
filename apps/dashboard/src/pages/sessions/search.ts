/** The filters of the sessions list as they stand in the address. What is not known is kept, so that it can be shown and taken off. */
export interface SessionsSearch {
  q?: string | undefined;
  machine?: string | undefined;
  agent?: string | undefined;
  state?: string | undefined;
  /** What this browser found: `verified`, `failed` or `unchecked`. */
  checked?: string | undefined;
}

const NAMES = ['q', 'machine', 'agent', 'state', 'checked'] as const;

/** Reads the address; anything that is not a text, or is longer than any filter can be, is left out. */
export function readSessionsSearch(raw: Record<string, unknown>): SessionsSearch {
  const search: SessionsSearch = {};
  for (const name of NAMES) {
    const value = raw[name];
    const text = typeof value === 'string' ? value : typeof value === 'number' ? String(value) : '';
    if (text !== '' && text.length <= 200) search[name] = text;
  }
  return search;
}

export const STATES = ['open', 'closed', 'forked'] as const;
export const CHECKED = ['verified', 'failed', 'unchecked'] as const;

/** The part of the filters that the vault understands; a value it would refuse is left to the page, which then shows nothing. */
export function vaultQuery(search: SessionsSearch): {
  machine?: string;
  agent?: string;
  state?: (typeof STATES)[number];
} {
  const state = STATES.find((known) => known === search.state);
  return {
    ...(search.machine !== undefined && /^[0-9a-f]{64}$/.test(search.machine) && { machine: search.machine }),
    ...(search.agent !== undefined && search.agent.length <= 64 && { agent: search.agent }),
    ...(state !== undefined && { state }),
  };
}
