import { parseStrictJson, utf8 } from '@nd7/entry';
import type { EntryView } from '@nd7/entry';
import { payloadView } from './read.js';
import type { PayloadView } from './adapter.js';

/** What a list or a timeline shows of an entry. Texts are untrusted: escape control characters before printing. */
export interface EntryDescription {
  /** The client's own name of the event. */
  event?: string | undefined;
  tool?: string | undefined;
  toolUseId?: string | undefined;
  agentId?: string | undefined;
  /** One line of what it is about: the command, the file, the beginning of the prompt. */
  text?: string | undefined;
}

/** Members of `tool_input` that say best what a call is about, in this order. */
const TELLING = [
  'command',
  'file_path',
  'notebook_path',
  'path',
  'pattern',
  'url',
  'query',
  'prompt',
  'description',
  'skill',
  'subject',
  'text',
];
const MAX_TEXT = 400;

/** Describes an entry of any agent that speaks Claude Code's or Copilot's dialect; empty for an entry without data. */
export function describeEntry(entry: EntryView): EntryDescription {
  if (entry.data === undefined) return {};
  const bytes = utf8(entry.data);
  const parsed = parseStrictJson(bytes, { object: true });
  if (!parsed.ok) return {};
  const view = payloadView(bytes, parsed.root);
  return {
    event: view.text('hook_event_name') ?? view.text('hookName'),
    tool: view.text('tool_name') ?? view.text('toolName'),
    toolUseId: view.text('tool_use_id'),
    agentId: view.text('agent_id'),
    text: shownText(entry, view),
  };
}

function shownText(entry: EntryView, view: PayloadView): string | undefined {
  for (const input of ['tool_input', 'toolArgs'])
    for (const key of TELLING) {
      const value = view.text(input, key) ?? shownBy(entry, `/${input}/${key}`);
      if (value !== undefined) return firstLine(value);
    }
  for (const key of [
    'prompt',
    'message',
    'error',
    'last_assistant_message',
    'file_path',
    'reason',
    'source',
    'name',
    'detail',
  ]) {
    const value = view.text(key) ?? shownBy(entry, `/${key}`);
    if (value !== undefined) return firstLine(value);
  }
  return undefined;
}

/** The readable remainder of a detached value, where the recorder left one. */
function shownBy(entry: EntryView, at: string): string | undefined {
  return entry.detached?.find((one) => one.at === at)?.shown;
}

function firstLine(text: string): string {
  const line = text.trimStart().split(/[\r\n]/, 1)[0] ?? '';
  return line.length > MAX_TEXT ? `${line.slice(0, MAX_TEXT)}…` : line;
}
