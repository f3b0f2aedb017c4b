import { type Entry, type Json, recordOf, textOf } from './payload.js';

/** A piece of what a call put out. */
export interface Output {
  name: string;
  text: string;
}

export interface DiffLine {
  sign: ' ' | '+' | '-';
  old?: number;
  now?: number;
  text: string;
}

/** Members of a tool's input that are shown as the call itself, and those that are long and shown below. */
const SUBJECT = [
  'command',
  'file_path',
  'notebook_path',
  'path',
  'pattern',
  'url',
  'query',
  'skill',
  'subject',
  'description',
  'prompt',
];

export function inputOf(entry: Entry | undefined): Json {
  return recordOf(entry?.data.tool_input) ?? recordOf(entry?.data.toolArgs) ?? {};
}

/** The one thing a call is about. */
export function subjectOf(input: Json): string | undefined {
  for (const key of SUBJECT) {
    const value = textOf(input[key]);
    if (value !== undefined) return value;
  }
  return undefined;
}

/** What else the call said, in short: other scalar members of its input. */
export function detailsOf(input: Json): [string, string][] {
  const subject = subjectOf(input);
  return Object.entries(input)
    .filter(
      ([key, value]) =>
        !['content', 'old_string', 'new_string', 'prompt'].includes(key) &&
        value !== subject &&
        ['string', 'number', 'boolean'].includes(typeof value),
    )
    .map(([key, value]): [string, string] => [key, String(value)])
    .filter(([, value]) => value.length <= 200)
    .slice(0, 6);
}

/** What came back, as the client reported it. */
export function outputsOf(entry: Entry | undefined, batch: Entry | undefined, call: string): Output[] {
  if (entry !== undefined) {
    const error = textOf(entry.data.error);
    if (error !== undefined) return [{ name: 'Error', text: error }];
    return responseOutputs(entry.data.tool_response ?? entry.data.toolResult);
  }
  const calls: unknown[] = Array.isArray(batch?.data.tool_calls) ? batch.data.tool_calls : [];
  const mine = calls.map(recordOf).find((one) => one?.tool_use_id === call);
  return mine === undefined ? [] : responseOutputs(mine.tool_response);
}

function responseOutputs(response: unknown): Output[] {
  if (response === undefined || response === null) return [];
  const text = textOf(response);
  if (text !== undefined) return text === '' ? [] : [{ name: 'Output', text }];
  if (Array.isArray(response)) {
    return response.map(recordOf).flatMap((block) => {
      const words = textOf(block?.text);
      return words === undefined ? [] : [{ name: 'Output', text: words }];
    });
  }
  const record = recordOf(response) ?? {};
  const found: Output[] = [];
  for (const [name, value] of [
    ['Output', record.stdout],
    ['Standard error', record.stderr],
    ['File', recordOf(record.file)?.content],
    ['Content', record.content],
    ['Result', record.result],
    ['Text', record.text],
  ] as const) {
    const words = textOf(value);
    if (words !== undefined && words !== '') found.push({ name, text: words });
  }
  if (found.length > 0 || record.stdout !== undefined) return found;
  return [{ name: 'Answer', text: JSON.stringify(response, null, 1) }];
}

/** The change that an edit said it made: from the patch the client reports, else from what it was asked to replace. */
export function diffOf(input: Json, after: Entry | undefined): DiffLine[] {
  const patch = recordOf(after?.data.tool_response)?.structuredPatch;
  if (Array.isArray(patch) && patch.length > 0)
    return (patch as unknown[]).flatMap((hunk) => hunkLines(recordOf(hunk)));
  const [old, now] = [textOf(input.old_string), textOf(input.new_string)];
  if (old === undefined || now === undefined) return [];
  return [
    ...old.split('\n').map((text): DiffLine => ({ sign: '-', text })),
    ...now.split('\n').map((text): DiffLine => ({ sign: '+', text })),
  ];
}

function hunkLines(hunk: Json | undefined): DiffLine[] {
  const lines: unknown[] = Array.isArray(hunk?.lines) ? hunk.lines : [];
  let [old, now] = [Number(hunk?.oldStart ?? 1), Number(hunk?.newStart ?? 1)];
  return lines.flatMap((line): DiffLine[] => {
    const text = textOf(line);
    if (text === undefined) return [];
    const sign = text.startsWith('+') ? '+' : text.startsWith('-') ? '-' : ' ';
    const shown: DiffLine = { sign, text: text.slice(1) };
    if (sign !== '+') shown.old = old++;
    if (sign !== '-') shown.now = now++;
    return [shown];
  });
}
