// A second reading of the format that shares nothing with the walk but the page it was written from.
import type { Head } from './head.js';
import { check, genesisOf, hashOf, session } from './made-log.fixture.js';

class Bad extends Error {}

/** JSON by RFC 8259, depth 256, with the keys that stand twice. */
function plainParse(text: string): { value: unknown; twice: boolean } {
  let at = 0;
  let twice = false;
  const space = () => {
    while (' \t\r\n'.includes(text[at] ?? 'x')) at++;
  };
  const need = (c: string) => {
    if (text[at] !== c) throw new Bad();
    at++;
  };
  const string = (): string => {
    const match = /^"(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"/.exec(text.slice(at));
    if (!match) throw new Bad();
    at += match[0].length;
    return JSON.parse(match[0]) as string;
  };
  const value = (depth: number): unknown => {
    space();
    const c = text[at];
    if (c === '"') return string();
    if (c === '{' || c === '[') {
      if (depth === 256) throw new Bad();
      const close = c === '{' ? '}' : ']';
      const entries = new Map<string, unknown>();
      at++;
      space();
      if (text[at] === close) at++;
      else {
        for (;;) {
          space();
          const key = c === '{' ? string() : String(entries.size);
          if (c === '{') {
            space();
            need(':');
          }
          const inner = value(depth + 1);
          if (entries.has(key)) twice = true;
          entries.set(key, inner);
          space();
          if (text[at] === close) {
            at++;
            break;
          }
          need(',');
        }
      }
      return c === '{' ? entries : [...entries.values()];
    }
    const match = /^(?:true|false|null|-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)/.exec(text.slice(at));
    if (!match) throw new Bad();
    at += match[0].length;
    return { raw: match[0] };
  };
  const result = value(0);
  space();
  if (at < text.length || !(result instanceof Map)) throw new Bad();
  return { value: result, twice };
}

export type Named = { entries: number; head: string } | { bad_entry: number; reason: string };

/** The verdict on a whole log, slow and plain. */
export function naive(log: Uint8Array, head?: Head): Named {
  let prev = genesisOf(session);
  if (head?.entries === 0 && head.hash !== prev) return { bad_entry: 0, reason: 'head-mismatch' };
  let key: string | null = null;
  let seq = 0;
  const bytes = Buffer.from(log);
  for (let at = 0; at < bytes.length; seq++) {
    const bad = (reason: string): Named => ({ bad_entry: seq, reason });
    const end = bytes.indexOf(10, at);
    if ((end < 0 ? bytes.length : end) - at > 1_048_576) return bad('too-long');
    if (end < 0) return bad('torn-tail');
    const line = bytes.subarray(at, end);
    at = end + 1;
    let text: string;
    try {
      text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(line);
    } catch {
      return bad('not-utf8');
    }
    let entry: Map<string, unknown>;
    try {
      const parsed = plainParse(text);
      if (parsed.twice) return bad('duplicate-key');
      entry = parsed.value as Map<string, unknown>;
    } catch {
      return bad('bad-json');
    }
    if (text.startsWith('{"v":') && !text.startsWith('{"v":1,')) return bad('unsupported-version');
    const match = /^\{"v":1,"seq":(0|[1-9][0-9]{0,15}),"prev":"([0-9a-f]{64})",/.exec(text);
    if (!match) return bad('bad-prefix');
    if (match[1] !== String(seq)) return bad('wrong-seq');
    if (match[2] !== prev) return bad(seq === 0 ? 'wrong-genesis' : 'wrong-prev');
    const data = entry.get('data');
    const inner: Map<string, unknown> =
      data instanceof Map ? (data as Map<string, unknown>) : new Map<string, unknown>();
    const own = entry.get('source') === 'recorder:nd7';
    const form = (n: number, v: unknown) => typeof v === 'string' && new RegExp(`^[0-9a-f]{${String(n)}}$`).test(v);
    if (seq === 0 && own && entry.get('kind') === 'session.start' && inner.has('key')) {
      const [machine, first, cert] = ['machine', 'key', 'cert'].map((name) => inner.get(name)) as string[];
      if (!form(64, machine) || !form(64, first) || !form(128, cert)) return bad('bad-seal');
      if (!check(machine ?? '', Buffer.from(`nd7-session/v1\n${session}\n${String(first)}\n`), cert ?? ''))
        return bad('bad-seal');
      key = first as string;
    } else if (own && entry.get('kind') === 'seal') {
      const [next, sig] = ['next', 'sig'].map((name) => inner.get(name)) as string[];
      if (key === null || !form(64, next) || !form(128, sig)) return bad('bad-seal');
      if (!check(key, Buffer.from(`nd7-seal/v1\n${session}\n${String(seq)}\n${prev}\n${String(next)}\n`), sig ?? ''))
        return bad('bad-seal');
      key = next as string;
    }
    prev = hashOf(line);
    if (head?.entries === seq + 1 && head.hash !== prev) return bad('head-mismatch');
  }
  if (head && head.entries > seq) return { bad_entry: seq, reason: 'truncated' };
  return { entries: seq, head: prev };
}
