import type { Adapter } from './adapter.js';
import { claudeFacts, kindByTable } from './claude-code.js';

/** Codex CLI 0.171.0: the names are Claude Code's, with `turn_id` and `model`; `Interrupt` and `StopFailure` come in newer ones. */
export const CODEX_EVENTS: Readonly<Record<string, { kind: string }>> = {
  SessionStart: { kind: 'session.start' },
  SessionEnd: { kind: 'session.end' },
  UserPromptSubmit: { kind: 'prompt' },
  PreToolUse: { kind: 'tool.before' },
  PermissionRequest: { kind: 'permission.asked' },
  PostToolUse: { kind: 'tool.after' },
  PreCompact: { kind: 'notice' },
  PostCompact: { kind: 'notice' },
  SubagentStart: { kind: 'agent.start' },
  SubagentStop: { kind: 'agent.stop' },
  Stop: { kind: 'turn.end' },
  StopFailure: { kind: 'turn.end' },
  Interrupt: { kind: 'turn.end' },
};

/** Reads Codex payloads. nd7 does not register itself with Codex yet; whoever does so by hand gets a true record. */
export const codex: Adapter = {
  agent: 'codex',
  sessionKeys: ['session_id'],
  env: {},
  facts: claudeFacts,
  kindOf: (facts) => kindByTable(CODEX_EVENTS, facts),
  isDecisive: (facts) => facts.event === 'PreToolUse' || facts.event === 'PermissionRequest',
  deny: (facts, reason) =>
    facts.event === 'PreToolUse'
      ? { exit: 2, stdout: '', stderr: reason } // exit 2 is refused by every Codex measured; unknown output members are not
      : undefined,
};
