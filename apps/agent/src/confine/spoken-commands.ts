// Which of the commands that an agent has announced (a hook before the tool runs) a text is that its shell is given.

import { blake3Hex } from '@nd7/blake3';

/** A payload that is longer is not looked into: no shell takes such a text. */
const MAX_PAYLOAD = 4 << 20;
/** Announced and neither run nor ended: what is older is forgotten. */
const MAX_SPOKEN = 1_000;
const SHELL_TOOL = 'Bash';

/** An id of a call or of a session is no longer; they are kept as long as the call runs. */
const MAX_ID = 1_000;

/** The text itself is not kept: programs inside could announce more than there is memory for. */
interface Spoken {
  call: string;
  session: string;
  digest: string;
}

export interface Match {
  call: string;
  session: string;
  /** `text`: the shell is given what was announced, word for word. `only`: it is not, and nothing else was announced that has not run. */
  by: 'text' | 'only';
}

export class SpokenCommands {
  /** Announced, not yet run; the oldest first. */
  readonly #waiting = new Map<string, Spoken>();

  /** Takes a hook's payload. Answers whether it announces a command, or which call has ended well without a command of it having been seen. */
  hear(payload: Uint8Array): 'announced' | { unseen: string } | undefined {
    if (payload.length > MAX_PAYLOAD) return undefined;
    const bytes = Buffer.from(payload.buffer, payload.byteOffset, payload.byteLength);
    if (!bytes.includes('ToolUse') || !bytes.includes(SHELL_TOOL)) return undefined;
    const said = parse(bytes);
    if (said?.['tool_name'] !== SHELL_TOOL) return undefined;
    const [call, session, input] = [said['tool_use_id'], said['session_id'], said['tool_input']];
    if (typeof call !== 'string' || call === '' || call.length > MAX_ID) return undefined;
    const event = said['hook_event_name'];
    if (event === 'PreToolUse') {
      const text = typeof input === 'object' && input !== null && 'command' in input ? input.command : undefined;
      if (typeof text !== 'string') return undefined;
      const of = typeof session === 'string' ? session.slice(0, MAX_ID) : '';
      this.#waiting.set(call, { call, session: of, digest: digestOf(text) });
      const [oldest] = this.#waiting.keys();
      if (this.#waiting.size > MAX_SPOKEN && oldest !== undefined) this.#waiting.delete(oldest);
      return 'announced';
    }
    const wasWaiting = this.#waiting.delete(call);
    return event === 'PostToolUse' && wasWaiting ? { unseen: call } : undefined;
  }

  /** Whether a shell's text is an announced command, word for word. */
  isAnnounced(text: string): boolean {
    const given = digestOf(text);
    return [...this.#waiting.values()].some(({ digest }) => digest === given);
  }

  /** The announced command that a shell's text is, which then has run. Of several alike the oldest. */
  match(text: string): Match | undefined {
    const all = [...this.#waiting.values()];
    const given = digestOf(evaluated(text) ?? text);
    const same = all.find(({ digest }) => digest === given);
    // A client may hand its command over in another form; its own shell's start is none.
    const found = same ?? (all.length === 1 && text.includes('eval') ? all[0] : undefined);
    if (found === undefined) return undefined;
    this.#waiting.delete(found.call);
    return { call: found.call, session: found.session, by: same === undefined ? 'only' : 'text' };
  }
}

/** What Claude Code (2.1.332) has its shell evaluate: `… && eval '…' < /dev/null && …`, an apostrophe in it as '"'"'. */
function evaluated(text: string): string | undefined {
  const quoted = /\beval ((?:'[^']*'|"'")+)/.exec(text)?.[1];
  return quoted?.replace(/'([^']*)'|"(')"/g, '$1$2');
}

/** Of a command without what the client puts in, and white space, which it trims. */
function digestOf(command: string): string {
  return blake3Hex(Buffer.from(command.replaceAll('< /dev/null', '').replace(/\s+/g, '')));
}

function parse(bytes: Buffer): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(bytes.toString('utf8'));
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : undefined;
  } catch {
    return undefined;
  }
}
