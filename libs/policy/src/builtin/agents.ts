import type { PolicyDocument } from '../document.js';

/** Packs of coding agents: their state, their service, and what in their state is trusted later. */
export const AGENTS: Readonly<Record<string, PolicyDocument>> = {
  'claude-code': {
    nd7: 1,
    files: {
      write: { allow: ['$CLAUDE_CONFIG_DIR', '$XDG_CACHE_HOME/claude-cli-nodejs'] },
      read: { deny: ['$CLAUDE_CONFIG_DIR/.credentials.json'] },
    },
    makeFolders: ['$CLAUDE_CONFIG_DIR', '$CLAUDE_CONFIG_DIR/plugins/store', '$XDG_CACHE_HOME/claude-cli-nodejs'],
    seeds: [{ from: '~/.claude.json', to: '$CLAUDE_CONFIG_DIR/.claude.json' }],
    protect: {
      refuse: [
        '$CLAUDE_CONFIG_DIR/settings*.json',
        '$CLAUDE_CONFIG_DIR/agents',
        '$CLAUDE_CONFIG_DIR/commands',
        '$CLAUDE_CONFIG_DIR/skills',
        '$CLAUDE_CONFIG_DIR/plugins',
        '$CLAUDE_CONFIG_DIR/hooks',
        '$CLAUDE_CONFIG_DIR/rules',
        '$CLAUDE_CONFIG_DIR/output-styles',
        '$CLAUDE_CONFIG_DIR/workflows',
        '$CLAUDE_CONFIG_DIR/CLAUDE.md',
        '$CLAUDE_CONFIG_DIR/keybindings.json',
        '$CLAUDE_CONFIG_DIR/local',
      ],
      // The index of installed plugins, made anew at every start.
      record: ['$CLAUDE_CONFIG_DIR/plugins/store'],
      mediate: [{ name: '$CLAUDE_CONFIG_DIR/.claude.json', by: 'claude-state' }],
    },
    network: { allow: ['api.anthropic.com'] },
    environment: {
      pass: ['ANTHROPIC_API_KEY', 'ANTHROPIC_AUTH_TOKEN', 'CLAUDE_CODE_OAUTH_TOKEN'],
      // Else the client keeps its state, lock and temporary files in the home folder itself, where it cannot write, and loses it silently.
      set: { CLAUDE_CONFIG_DIR: '$CLAUDE_CONFIG_DIR', DISABLE_AUTOUPDATER: '1' },
    },
  },
  'claude-code-login': {
    nd7: 1,
    extends: ['claude-code'],
    // The client renews its login on disk, so it has to see it: an exception to "no credentials inside" that the manifest names.
    files: { write: { allow: ['$CLAUDE_CONFIG_DIR/.credentials.json'] } },
    network: { allow: ['claude.ai', 'console.anthropic.com', 'platform.claude.com'] },
  },
  codex: {
    nd7: 1,
    files: {
      write: { allow: ['$CODEX_HOME'] },
      read: { deny: ['$CODEX_HOME/auth.json'] },
    },
    makeFolders: ['$CODEX_HOME'],
    protect: {
      refuse: [
        '$CODEX_HOME/config.toml',
        '$CODEX_HOME/*.config.toml',
        '$CODEX_HOME/hooks.json',
        '$CODEX_HOME/hooks',
        '$CODEX_HOME/AGENTS.md',
        '$CODEX_HOME/AGENTS.override.md',
        '$CODEX_HOME/prompts',
        '$CODEX_HOME/skills',
        '$CODEX_HOME/rules',
        '$CODEX_HOME/plugins',
        '$CODEX_HOME/agents',
        '$CODEX_HOME/.env',
      ],
    },
    network: { allow: ['api.openai.com'] },
    environment: { pass: ['OPENAI_API_KEY', 'CODEX_API_KEY'], set: { CODEX_HOME: '$CODEX_HOME' } },
  },
  'codex-login': {
    nd7: 1,
    extends: ['codex'],
    files: { write: { allow: ['$CODEX_HOME/auth.json'] } },
    network: { allow: ['auth.openai.com', 'chatgpt.com'] },
  },
};
