const NAMES: Readonly<Record<string, string>> = {
  'claude-code': 'Claude Code',
  codex: 'Codex',
  'gemini-cli': 'Gemini CLI',
  cursor: 'Cursor',
  'copilot-cli': 'Copilot CLI',
  opencode: 'OpenCode',
};

/** An agent as people call it; one that is not known by its own name. */
export function agentName(agent: string | null | undefined): string {
  if (agent === null || agent === undefined || agent === '') return 'no agent named';
  return Object.hasOwn(NAMES, agent) ? (NAMES[agent] ?? agent) : agent;
}
