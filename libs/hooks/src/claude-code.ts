import type { Adapter, HookAnswer, HookFacts, PayloadView } from './adapter.js';

/**
 * Claude Code 2.1.332: its 34 hook events and what nd7 calls them. An event that is not listed (a newer client) is recorded
 * as kind `event`. Whether init registers an event is decided here too:
 *
 * - `WorktreeCreate` is never registered: a configured hook *replaces* the client's own `git worktree add`.
 * - `MessageDisplay` is not registered by default: one process per batch of lines drawn on the screen; the text stands in `Stop`
 *   and in the transcript.
 * - `FileChanged` is not registered: its matcher is a list of files the client would begin to watch, and what it reports is a
 *   change without an author. Changes of settings come by `ConfigChange`.
 */
export const CLAUDE_EVENTS: Readonly<Record<string, { kind: string; register: boolean; timeout?: number }>> = {
  SessionStart: { kind: 'session.start', register: true },
  SessionEnd: { kind: 'session.end', register: true, timeout: 5 },
  Setup: { kind: 'notice', register: true },
  InstructionsLoaded: { kind: 'config.change', register: true },
  UserPromptSubmit: { kind: 'prompt', register: true },
  UserPromptExpansion: { kind: 'prompt', register: true },
  MessageDisplay: { kind: 'notice', register: false },
  PreToolUse: { kind: 'tool.before', register: true },
  PermissionRequest: { kind: 'permission.asked', register: true },
  PermissionDenied: { kind: 'permission.denied', register: true },
  PostToolUse: { kind: 'tool.after', register: true },
  PostToolUseFailure: { kind: 'tool.failed', register: true },
  PostToolBatch: { kind: 'tool.batch', register: true },
  PreSkillShellCommand: { kind: 'tool.before', register: true },
  Notification: { kind: 'notice', register: true },
  SubagentStart: { kind: 'agent.start', register: true },
  SubagentStop: { kind: 'agent.stop', register: true },
  TaskCreated: { kind: 'notice', register: true },
  TaskCompleted: { kind: 'notice', register: true },
  TeammateIdle: { kind: 'notice', register: true },
  Stop: { kind: 'turn.end', register: true },
  StopFailure: { kind: 'turn.end', register: true },
  PreCompact: { kind: 'notice', register: true },
  PostCompact: { kind: 'notice', register: true },
  PreModelSwitch: { kind: 'config.change', register: true },
  PostModelSwitch: { kind: 'config.change', register: true },
  Elicitation: { kind: 'notice', register: true },
  ElicitationResult: { kind: 'notice', register: true },
  ConfigChange: { kind: 'config.change', register: true },
  CwdChanged: { kind: 'config.change', register: true },
  DirectoryAdded: { kind: 'config.change', register: true },
  FileChanged: { kind: 'notice', register: false },
  WorktreeCreate: { kind: 'notice', register: false },
  WorktreeRemove: { kind: 'notice', register: true },
};

/** The facts of a payload that speaks Claude Code's dialect (Codex copies it). */
export function claudeFacts(payload: PayloadView): HookFacts {
  const toolUseId = payload.text('tool_use_id');
  return {
    event: payload.text('hook_event_name'),
    toolName: payload.text('tool_name'),
    toolUseId,
    callIds: [...(toolUseId === undefined ? [] : [toolUseId]), ...payload.texts('tool_calls', 'tool_use_id')],
    agentId: payload.text('agent_id'),
    agentType: payload.text('agent_type'),
    cwd: payload.text('cwd'),
    transcriptPath: payload.text('transcript_path'),
    source: payload.text('source'),
    reason: payload.text('reason'),
    filePath: payload.text('file_path'),
  };
}

/** The kind of a Claude-dialect event by a table; a resumed or compacted session goes on, it does not begin. */
export function kindByTable(table: Readonly<Record<string, { kind: string }>>, facts: HookFacts): string {
  const known = facts.event !== undefined && Object.hasOwn(table, facts.event) ? table[facts.event] : undefined;
  if (known === undefined) return 'event';
  if (known.kind === 'session.start' && (facts.source === 'resume' || facts.source === 'compact'))
    return 'session.resume';
  return known.kind;
}

/** Refuses a tool call in the words Claude Code reads; a ConfigChange is refused by exit 2 (measured on 2.1.332). */
function deny(facts: HookFacts, reason: string): HookAnswer | undefined {
  switch (facts.event) {
    case 'PreToolUse':
    case 'PreSkillShellCommand': {
      const hookSpecificOutput = {
        hookEventName: facts.event,
        permissionDecision: 'deny',
        permissionDecisionReason: reason,
      };
      return { exit: 0, stdout: JSON.stringify({ hookSpecificOutput }), stderr: '' };
    }
    case 'ConfigChange':
      return { exit: 2, stdout: '', stderr: reason };
    default:
      return undefined;
  }
}

/** Claude Code (2.1.332; older and newer clients too: what is not known is recorded as it came). */
export const claudeCode: Adapter = {
  agent: 'claude-code',
  sessionKeys: ['session_id'],
  env: {
    session: 'CLAUDE_CODE_SESSION_ID',
    pid: 'CLAUDE_PID',
    project: 'CLAUDE_PROJECT_DIR',
    userSettings: 'CLAUDE_CONFIG_DIR',
  },
  facts: claudeFacts,
  kindOf: (facts) => kindByTable(CLAUDE_EVENTS, facts),
  // A permission request is waited for too, and what it asks is the first trace of a call made where PreToolUse never fires.
  isDecisive: (facts) =>
    ['PreToolUse', 'PreSkillShellCommand', 'PermissionRequest', 'ConfigChange'].includes(facts.event ?? ''),
  deny,
};
