import type { PayloadView } from './adapter.js';

/**
 * Which agent a payload looks like, by members only that agent sends; undefined when nothing decides. Neither the environment
 * nor the place of the configuration tells: Cursor and others run Claude Code's hooks.
 */
export function detectAgent(payload: PayloadView): string | undefined {
  const event = payload.text('hook_event_name') ?? '';
  if (payload.has('conversation_id') && payload.has('cursor_version')) return 'cursor';
  if (payload.has('conversationId') && payload.has('stepIdx')) return 'antigravity';
  if (payload.has('sessionId') && (payload.has('toolName') || payload.has('timestamp'))) return 'copilot-cli';
  if (payload.has('turn_id') && payload.has('model')) return 'codex';
  if (payload.has('timestamp') && /^(Before|After|PreCompress|Session|Notification)/.test(event)) return 'gemini-cli';
  if (payload.has('prompt_id') || payload.has('effort') || (payload.text('tool_use_id') ?? '').startsWith('toolu_'))
    return 'claude-code';
  return undefined;
}
