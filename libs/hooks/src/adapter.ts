import type { JsonNode } from '@nd7/entry';

/**
 * What one agent's payloads look like. An adapter only reads: it never changes a payload and never refuses one.
 * One file per agent implements it; `readHook` (read.ts) does everything that is the same for all.
 */
export interface Adapter {
  /** Producer name, the part of `source` after `intent:`; also the value of `--agent`. */
  readonly agent: string;
  /** Members of the payload that may hold the session id, first match wins. */
  readonly sessionKeys: readonly string[];
  /** Names of the environment variables of a hook process that hold the session id, the client's pid, the project, the folder of the user's settings. */
  readonly env: {
    readonly session?: string;
    readonly pid?: string;
    readonly project?: string;
    readonly userSettings?: string;
  };
  /** The facts the recorder needs, as far as they stand in the payload. */
  facts(payload: PayloadView): HookFacts;
  /** The kind of docs/format.md for a payload; `event` for everything this adapter does not know. */
  kindOf(facts: HookFacts): string;
  /** True for events whose answer the client waits for before it acts: these are durable before they are answered. */
  isDecisive(facts: HookFacts): boolean;
  /** The answer that refuses the call a payload announces, undefined when the event cannot be refused. */
  deny(facts: HookFacts, reason: string): HookAnswer | undefined;
}

/** What the hook command hands back to its client. Nothing on stdout and exit 0 is "no opinion". */
export interface HookAnswer {
  exit: number;
  stdout: string;
  stderr: string;
}

/** The answer of a recorder that has no opinion: it prints nothing. */
export const NO_OPINION: HookAnswer = { exit: 0, stdout: '', stderr: '' };

/** Facts taken from a payload. Absent: the payload does not say. Strings are unescaped, untrusted and unbounded. */
export interface HookFacts {
  event?: string | undefined;
  toolName?: string | undefined;
  toolUseId?: string | undefined;
  /** Every call id the payload speaks of: its own, or those of a batch. */
  callIds?: string[] | undefined;
  agentId?: string | undefined;
  agentType?: string | undefined;
  cwd?: string | undefined;
  transcriptPath?: string | undefined;
  /** SessionStart: startup, resume, …; ConfigChange: which settings. */
  source?: string | undefined;
  /** SessionEnd: why. */
  reason?: string | undefined;
  /** ConfigChange, FileChanged: the file. */
  filePath?: string | undefined;
}

/** Read access to one parsed payload. */
export interface PayloadView {
  readonly root: JsonNode;
  /** The string at a path of member names; undefined when it is not there or no string. */
  text(...path: string[]): string | undefined;
  /** The strings under `key` of each object in the top-level list `list`. */
  texts(list: string, key: string): string[];
  /** Whether a member stands at the top level, whatever its value. */
  has(key: string): boolean;
}
