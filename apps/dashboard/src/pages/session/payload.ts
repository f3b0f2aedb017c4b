import { type EntryView, readEntry } from '@nd7/entry';
import type { Row } from '../../worker/row.js';
import type { SessionBytes } from './bytes.js';

export type Json = Record<string, unknown>;

/** An entry read strictly, and its payload as values. Texts in it are the agent's. */
export interface Entry {
  view: EntryView;
  data: Json;
}

/** Reads the line of a row. The strict reader has the last word: what it does not accept has no payload. */
export function entryOf(bytes: SessionBytes, row: Row | undefined): Entry | undefined {
  if (row === undefined) return undefined;
  const view = readEntry(bytes.line(row));
  return { view, data: view.data === undefined ? {} : (JSON.parse(view.data) as Json) };
}

export function textOf(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined;
}

export function recordOf(value: unknown): Json | undefined {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Json) : undefined;
}

/**
 * Lays JSON text out in lines without touching a token: numbers and strings stay as they were said, only white space between tokens is put in.
 * Text that is not JSON comes back as far as it goes; nothing throws.
 */
export function layOut(json: string): string {
  let [out, depth, at] = ['', 0, 0];
  const pad = () => `\n${' '.repeat(Math.max(0, Math.min(depth, 40)))}`;
  while (at < json.length) {
    const c = json.charAt(at);
    if (c === '"') {
      const end = stringEnd(json, at);
      out += json.slice(at, end);
      at = end;
      continue;
    }
    if (c === '{' || c === '[') {
      const close = /^[{[]\s*[}\]]/.exec(json.slice(at, at + 64));
      if (close !== null) {
        out += c + close[0].slice(-1);
        at += close[0].length;
        continue;
      }
      depth += 1;
      out += c + pad();
    } else if (c === '}' || c === ']') {
      depth -= 1;
      out += pad() + c;
    } else if (c === ',') out += c + pad();
    else if (!/\s/.test(c)) out += c;
    at += 1;
  }
  return out;
}

function stringEnd(json: string, start: number): number {
  let at = start + 1;
  while (at < json.length && json.charAt(at) !== '"') at += json.charAt(at) === '\\' ? 2 : 1;
  return at + 1;
}
