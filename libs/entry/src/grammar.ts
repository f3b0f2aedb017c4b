/** The longest line, in bytes without its `\n` (docs/format.md, "An entry"). */
export const MAX_LINE = 1_048_576;

/** How deep brackets may nest in a line, the entry's own counted. */
export const MAX_DEPTH = 256;

/** Who could have caused an entry. A reader never presents one class as another. */
export type EvidenceClass = 'intent' | 'effect' | 'decision' | 'recorder';

const SESSION_ID = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/;
const SOURCE = /^(intent|effect|decision|recorder):([a-z0-9][a-z0-9.-]{0,63})$/;
const KIND = /^[a-z][a-z0-9]*(?:[.-][a-z0-9]+)*$/;
const MAX_KIND = 64;
const TIME = /^(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)\.\d{3}Z$/;

/** Whether a text may name a session. Nothing else may ever become part of a path. */
export function isSessionId(text: string): boolean {
  return SESSION_ID.test(text);
}

/** Class and producer of an entry's `source`, or `undefined` where it is not of the form `class:producer`. */
export function parseSource(source: string): { class: EvidenceClass; producer: string } | undefined {
  const match = SOURCE.exec(source);
  if (match === null) return undefined;
  return { class: match[1] as EvidenceClass, producer: match[2] as string };
}

/** Whether a text has the form of a `kind`. Unknown kinds are well formed: they are kept and shown by name. */
export function isKind(kind: string): boolean {
  return kind.length <= MAX_KIND && KIND.test(kind);
}

/** Whether a text is a `time`: RFC 3339 in UTC with milliseconds, a day that exists, no leap second. */
export function isTime(text: string): boolean {
  const match = TIME.exec(text);
  if (match === null) return false;
  const [year, month, day, hour, minute, second] = match.slice(1).map(Number) as [
    number,
    number,
    number,
    number,
    number,
    number,
  ];
  if (month < 1 || month > 12 || day < 1 || hour > 23 || minute > 59 || second > 59) return false;
  return day <= daysIn(year, month);
}

function daysIn(year: number, month: number): number {
  if (month === 2) return (year % 4 === 0 && year % 100 !== 0) || year % 400 === 0 ? 29 : 28;
  return month === 4 || month === 6 || month === 9 || month === 11 ? 30 : 31;
}

const TIME_LENGTH = '0000-01-01T00:00:00.000Z'.length;

/** Milliseconds since the epoch as an entry's `time`. Years 0000 to 9999; throws `RangeError` outside. */
export function formatTime(ms: number): string {
  const text = new Date(ms).toISOString();
  // Years of more digits have a sign, and only they.
  if (text.length !== TIME_LENGTH) throw new RangeError(`no RFC 3339 time: ${ms} ms`);
  return text;
}
