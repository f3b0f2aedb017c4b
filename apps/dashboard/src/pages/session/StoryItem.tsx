import type { Row } from '../../worker/row.js';
import { cx } from '../../ui/cx.js';
import { ClassChip, SeenMark, Verdict } from '../../ui/Evidence.js';
import { Icon, type IconName } from '../../ui/Icon.js';
import { Said } from '../../ui/Said.js';
import { Time } from '../../ui/Time.js';
import { duration } from '../../ui/time-words.js';
import type { SessionBytes } from './bytes.js';
import { CallBody } from './CallBody.js';
import { entryOf, textOf } from './payload.js';
import { type CallItem, callState, type Item, needsLook } from './story.js';
import css from './timeline.module.css';

/** What the items of a session's story have in common. */
export interface StoryContext {
  bytes: SessionBytes;
  /** How the agent is called. */
  agent: string;
  /** Effect entries of the whole session: an empty column says why it is empty. */
  effects: number;
  decisions: number;
  /** No entry will follow, by the vault's word or by the session's own end. */
  isOver: boolean;
  bad: { entry: number; reason: string } | undefined;
  isOpen: (id: string) => boolean;
  toggle: (id: string) => void;
  select: (seq: number) => void;
}

/** One event of the story: when, on the rail what, and beside it the words. */
export function StoryItem({ item, context }: { item: Item; context: StoryContext }) {
  const row = item.type === 'call' ? (item.before ?? item.after ?? item.failed ?? item.others[0]) : item.row;
  return (
    <>
      <span className={css.when}>{row?.time === undefined ? '' : <Time at={row.time} plain />}</span>
      <span className={css.rail}>
        <Icon name={iconOf(item)} />
      </span>
      <div className={css.body}>
        {item.type === 'call' && <Call item={item} context={context} />}
        {item.type === 'say' && <Speech row={item.row} who={item.who} context={context} />}
        {item.type === 'line' && <Line row={item.row} context={context} />}
      </div>
    </>
  );
}

const TOOLS: Readonly<Record<string, IconName>> = {
  Bash: 'term',
  Read: 'file',
  Write: 'pencil',
  Edit: 'pencil',
  MultiEdit: 'pencil',
  NotebookEdit: 'pencil',
  Grep: 'search',
  Glob: 'search',
  Agent: 'bot',
  Task: 'bot',
  WebFetch: 'out',
  WebSearch: 'search',
  shell: 'term',
  apply_patch: 'pencil',
};
const KINDS: Readonly<Record<string, IconName>> = {
  seal: 'seal',
  gap: 'gap',
  alarm: 'v-warn',
  'session.start': 'play',
  'session.resume': 'play',
  'session.end': 'clock',
  'agent.start': 'bot',
  'agent.stop': 'bot',
  'config.change': 'doc',
  'turn.end': 'chat',
  'tool.batch': 'list',
  file: 'file',
  exec: 'term',
  net: 'out',
  network: 'out',
  'network.end': 'out',
};

function iconOf(item: Item): IconName {
  if (item.type === 'call') return toolIcon(item.tool);
  if (item.type === 'say') return item.who === 'user' ? 'user' : item.who === 'agent' ? 'chat' : 'bot';
  if (item.row.class === 'unclassified') return 'v-none';
  const kind = item.row.kind ?? '';
  if (Object.hasOwn(KINDS, kind)) return KINDS[kind] ?? 'note';
  return item.row.class === 'decision' ? 'diamond' : item.row.class === 'effect' ? 'square' : 'note';
}

function toolIcon(tool: string): IconName {
  return Object.hasOwn(TOOLS, tool) ? (TOOLS[tool] ?? 'term') : 'term';
}

/** The entry's number; it selects the entry. */
function Seq({ seq, context }: { seq: number; context: StoryContext }) {
  return (
    <button
      type="button"
      className={css.seq}
      tabIndex={-1}
      aria-label={`Entry ${String(seq)}`}
      onClick={() => {
        context.select(seq);
      }}
    >
      #{seq.toLocaleString('en')}
    </button>
  );
}

function Broken({ seq, context }: { seq: number; context: StoryContext }) {
  if (context.bad?.entry !== seq) return null;
  return <Verdict shape="bad">{context.bad.reason}</Verdict>;
}

function Speech({ row, who, context }: { row: Row; who: 'user' | 'agent' | 'subagent'; context: StoryContext }) {
  const entry = entryOf(context.bytes, row);
  const words =
    ['prompt', 'last_assistant_message', 'delta']
      .map((key) => textOf(entry?.data[key]))
      .find((text) => text !== undefined) ??
    row.text ??
    '';
  return (
    <div className={cx(css.box, css.say, who === 'user' && css.user)}>
      <header>
        <b>{who === 'user' ? 'User' : who === 'agent' ? context.agent : 'Subagent'}</b>{' '}
        {who === 'user' ? 'prompt' : 'said'} <ClassChip of={row.class} />
        <Broken seq={row.seq} context={context} />
        <Seq seq={row.seq} context={context} />
      </header>
      <div className={css.words}>
        <Said text={words} lines />
      </div>
    </div>
  );
}

const NAMES: Readonly<Record<string, string>> = {
  'session.start': 'Session started',
  'session.resume': 'Session resumed',
  'session.end': 'Session ended',
  seal: 'Seal',
  gap: 'Gap',
  alarm: 'Alarm',
  'tool.batch': 'Calls reported',
  'permission.asked': 'Permission asked',
  'permission.denied': 'Permission denied',
  'agent.start': 'Subagent started',
  'agent.stop': 'Subagent stopped',
  'turn.end': 'Turn ended',
  'config.change': 'Configuration',
  notice: 'Notice',
  event: 'Event',
  'rule.allow': 'Allowed',
  'rule.deny': 'Denied',
  grant: 'Grant',
  revoke: 'Revoked',
  file: 'File',
  exec: 'Process',
  net: 'Connection',
  network: 'Connection',
  'network.end': 'Connection ended',
};

function Line({ row, context }: { row: Row; context: StoryContext }) {
  const kind = row.kind ?? '';
  const name =
    row.class === 'unclassified' ? 'Not an entry that can be read' : Object.hasOwn(NAMES, kind) ? NAMES[kind] : kind;
  return (
    <div className={css.line}>
      <ClassChip of={row.class} />
      <b className={cx('strong', 'nowrap', needsLook(row) && 't-warn')}>{name}</b>
      {row.tool !== undefined && <Said text={row.tool} className="nowrap" />}
      {row.text !== undefined ? (
        <Said text={row.text} className="cut" />
      ) : (
        <span className="cut mute">
          {row.class === 'unclassified' ? (row.fault ?? 'a member is missing or not of its form') : lineWords(row)}
        </span>
      )}
      <Broken seq={row.seq} context={context} />
      <Seq seq={row.seq} context={context} />
    </div>
  );
}

function lineWords(row: Row): string {
  if (row.kind === 'seal') return 'what stands before it is signed, the key is retired, the next one named';
  if (row.kind === 'agent.start') return row.agentType ?? '';
  if (row.kind === 'tool.batch') return `${String(row.calls?.length ?? 0)} together`;
  return row.event ?? '';
}

function Call({ item, context }: { item: CallItem; context: StoryContext }) {
  const open = context.isOpen(item.id);
  const subject = item.before?.text ?? item.after?.text ?? item.failed?.text;
  const state = callState(item, context.isOver);
  const looks = [...item.decisions, ...item.others].some(needsLook);
  const bad =
    context.bad !== undefined &&
    [item.before, item.after, item.failed, item.batch].some((row) => row?.seq === context.bad?.entry);
  const took = item.after?.took ?? item.failed?.took;
  return (
    <div className={cx(css.box, looks && css.warned, bad && css.broken)}>
      <div className={css.summary}>
        <button
          type="button"
          className={css.fold}
          aria-expanded={open}
          tabIndex={-1}
          onClick={() => {
            context.toggle(item.id);
          }}
        >
          <Icon name="chev" turn={open} />
          <Icon name={toolIcon(item.tool)} size="small" />
          <b>
            <Said text={item.tool} />
          </b>
          {subject !== undefined && (
            <code className="cut">
              <Said text={subject} />
            </code>
          )}
        </button>
        {state === 'failed' && <span className="small strong nowrap">failed</span>}
        {state === 'reported' && <span className="small mute nowrap">reported with others</span>}
        {state === 'running' && <Verdict shape="run">no result yet</Verdict>}
        {state === 'never' && <Verdict shape="warn">no result ever</Verdict>}
        {bad && <Verdict shape="bad">{context.bad?.reason}</Verdict>}
        <span className="hide-m">
          <SeenMark effects={item.effects.length} />
        </span>
        {took !== undefined && <span className="mute small nowrap hide-m">{duration(took)}</span>}
        <Seq seq={item.seq} context={context} />
      </div>
      {open && <CallBody item={item} state={state} context={context} />}
    </div>
  );
}
