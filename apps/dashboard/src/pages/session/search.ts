export const VIEWS = ['story', 'entries', 'receipts', 'segments'] as const;
export type View = (typeof VIEWS)[number];

/** What of a session is shown, as it stands in the address. */
export interface SessionSearch {
  view?: View | undefined;
  entry?: number | undefined;
  /** Evidence classes that are hidden, joined by commas. */
  hide?: string | undefined;
  kind?: string | undefined;
  tool?: string | undefined;
  q?: string | undefined;
}

export function readSessionSearch(raw: Record<string, unknown>): SessionSearch {
  const search: SessionSearch = {};
  const view = VIEWS.find((known) => known === raw.view);
  if (view !== undefined && view !== 'story') search.view = view;
  const entry = Number(raw.entry);
  if (raw.entry !== undefined && raw.entry !== '' && Number.isSafeInteger(entry) && entry >= 0) search.entry = entry;
  for (const name of ['hide', 'kind', 'tool', 'q'] as const) {
    const value = raw[name];
    if (typeof value === 'string' && value !== '' && value.length <= 200) search[name] = value;
  }
  return search;
}
