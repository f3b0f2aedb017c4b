import type { Range } from './memory.js';
import { findNamed, isSecretValue } from './named.js';
import { Runs } from './runs.js';
import { scanJson, unquote } from './scan.js';

/** `.env`, `.env.local`, `.envrc`, `prod.env`: the last part of a path. */
const ENV_PATH = /(?:^|[/\\])(?:\.env[^/\\]{0,64}|[^/\\]{1,64}\.env)$/;
/** The same as one word of a shell command. */
const ENV_WORD = /(?:^|[\s"'=/<>(])\.env(?:\.[\w-]{1,64}|rc)?(?=$|[\s"';|&)<>])/;
const PATH_KEYS = new Set(['file_path', 'filePath', 'notebook_path', 'path', 'absolute_path', 'filename']);
/** Deep enough for `tool_calls[n].tool_response.file.filePath`. */
const DEPTH = 8;

/** A value of a tool call that shows an env file: `file`, every string in it is a piece of the file; `output`, it may hold lines of one. */
export interface EnvScope extends Range {
  kind: 'file' | 'output';
}

/**
 * Finds the tool calls of a payload (objects that have a `tool_input`: the payload itself, or one of a batch) that read or write an env file,
 * by a path they name or by their command, and returns where their inputs and outputs stand.
 */
export function envScopes(text: string): EnvScope[] {
  const scopes: EnvScope[] = [];
  if (!text.includes('.env') && !text.includes('\\u')) return scopes;
  interface Level {
    key: string;
    start: number;
    /** Where `tool_input` and `tool_response` of this object stand. */
    parts: Range[];
    call: boolean;
    file: boolean;
    command: boolean;
  }
  const levels: Level[] = [];
  let depth = 0;
  const childEnds = (start: number, end: number): void => {
    const parent = levels[depth - 1];
    if (depth > DEPTH || !parent) return;
    if (parent.key === 'tool_input' || parent.key === 'tool_response') parent.parts.push({ start, end });
  };
  scanJson(text, {
    open: (_object, at) => {
      if (depth < DEPTH) levels[depth] = { key: '', start: at, parts: [], call: false, file: false, command: false };
      depth++;
    },
    close: (end) => {
      depth--;
      const level = levels[depth];
      if (depth >= DEPTH || !level) return;
      const parent = levels[depth - 1];
      if (level.call) {
        if (level.file || level.command)
          for (const part of level.parts) scopes.push({ ...part, kind: level.file ? 'file' : 'output' });
      } else if (parent) {
        parent.file ||= level.file;
        parent.command ||= level.command;
      }
      childEnds(level.start, end);
    },
    key: (start, end) => {
      const level = levels[depth - 1];
      if (depth > DEPTH || !level) return;
      level.key = end - start > 200 ? '' : unquote(text.slice(start, end));
      if (level.key === 'tool_input') level.call = true;
    },
    scalar: (start, end) => {
      const level = levels[depth - 1];
      if (depth > DEPTH || !level) return;
      childEnds(start, end);
      if (text.charCodeAt(start) !== 0x22) return;
      if (PATH_KEYS.has(level.key) && end - start <= 8192)
        level.file ||= ENV_PATH.test(unquote(text.slice(start, end)));
      else if (level.key === 'command' && end - start <= 65_536)
        level.command ||= ENV_WORD.test(unquote(text.slice(start, end)));
    },
  });
  // A call inside a call's input is part of it.
  let reached = 0;
  return scopes
    .sort((a, b) => a.start - b.start || b.end - a.end)
    .filter((scope) => {
      const inside = scope.start < reached;
      reached = Math.max(reached, scope.end);
      return !inside;
    });
}

/** Members of a call about a file that say which file and how, not what is in it. */
const ABOUT_FILE = new Set([
  ...PATH_KEYS,
  'type',
  'tool_name',
  'command',
  'description',
  'encoding',
  'language',
  'edit_mode',
  'cell_id',
  'pattern',
  'glob',
  'output_mode',
]);

export function isAboutFile(key: string): boolean {
  return ABOUT_FILE.has(key);
}

const ASSIGNMENT = /^([\s\d→|+-]{0,24}(?:export[ \t]+|set[ \t]+)?)([A-Za-z_][\w.-]{0,127})([ \t]{0,8}[=:][ \t]{0,8})/;

/**
 * What is secret in text of an env file: the value of every assignment (all of them: which of an env file's values matters is not for a recorder to
 * guess), over several lines where it is quoted so. In a `file`, lines that are none of assignment, comment and blank are parts of a value.
 */
export function findEnv(runs: Runs, kind: EnvScope['kind']): Range[] {
  const { text } = runs;
  const found: Range[] = [];
  for (let at = 0; at < text.length;) {
    const end = runs.end('line', at);
    const line = text.slice(at, Math.min(end, at + 320));
    const m = ASSIGNMENT.exec(line);
    let next = end;
    if (m) {
      const value = valueOf(runs, at + m[0].length, end);
      next = Math.max(end, value.end);
      const said = text.slice(value.start, Math.min(value.end, value.start + 128));
      if (value.end > value.start && (kind === 'file' ? said.trim() !== '' : isSecretValue(said, 'strong', true)))
        found.push(value);
    } else if (kind === 'file' && !/^[\s\d→|+-]{0,24}(?:#|$)/.test(line)) {
      found.push({ start: at, end });
    }
    at = next + 1;
  }
  return [...found, ...(kind === 'file' ? [] : findNamed(runs))];
}

function valueOf(runs: Runs, start: number, lineEnd: number): Range {
  const quote = runs.text.charCodeAt(start);
  if (quote !== 0x22 && quote !== 0x27 && quote !== 0x60) return { start, end: trimEnd(runs.text, start, lineEnd) };
  const close = runs.closing(quote, start + 1);
  return close < 0 ? { start: start + 1, end: lineEnd } : { start: start + 1, end: close };
}

function trimEnd(text: string, start: number, end: number): number {
  while (end > start && text.charCodeAt(end - 1) <= 0x20) end--;
  return end;
}
