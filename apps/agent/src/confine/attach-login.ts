import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { accessAt, environmentInside, type Ruleset } from '@nd7/policy';
import type { AgentName } from './attach-agent.js';

/** Where an agent keeps its login, what stands for one in its environment, and the pack that shows it inside. */
const LOGINS: Record<AgentName, { folder: string; usual: string; file: string; keys: string[]; pack: string }> = {
  'claude-code': {
    folder: 'CLAUDE_CONFIG_DIR',
    usual: '.claude',
    file: '.credentials.json',
    keys: ['ANTHROPIC_API_KEY', 'ANTHROPIC_AUTH_TOKEN', 'CLAUDE_CODE_OAUTH_TOKEN'],
    pack: 'claude-code-login',
  },
  codex: {
    folder: 'CODEX_HOME',
    usual: '.codex',
    file: 'auth.json',
    keys: ['OPENAI_API_KEY', 'CODEX_API_KEY'],
    pack: 'codex-login',
  },
};

/** What to say where a person has a login that the agent will not find inside; undefined where it has what it needs, or there is none. */
export function hiddenLogin(agent: AgentName, ruleset: Ruleset, environment: NodeJS.ProcessEnv): string | undefined {
  const { folder, usual, file, keys, pack } = LOGINS[agent];
  const inside = environmentInside(ruleset.environment, environment);
  const held = ruleset.network.credentials.map(({ placeholderVariable }) => placeholderVariable);
  if (keys.some((name) => (inside[name] ?? '') !== '' || held.includes(name))) return undefined;
  const path = join(inside[folder] ?? join(ruleset.home, usual), file);
  if (!existsSync(path) || accessAt(ruleset, path).read) return undefined;
  return `the login in ${path} is hidden inside: the agent will ask for one. "packs": {"${pack}": true} in your policy shows it to the agent and all that it starts`;
}

/** How Claude Code knows a key that its person has approved (2.1.332). */
const TAIL = 20;

/**
 * What to say where Claude Code will ask at a terminal whether it may use the key in its environment: the answer gives rights, so that the
 * file in which it is kept does not change inside. Without a terminal it asks nothing.
 */
export function unapprovedKey(
  ruleset: Ruleset,
  environment: NodeJS.ProcessEnv,
  own: readonly string[],
): string | undefined {
  const { ANTHROPIC_API_KEY: key, CLAUDE_CONFIG_DIR: folder } = environmentInside(ruleset.environment, environment);
  if (
    key === undefined ||
    key === '' ||
    folder === undefined ||
    own.some((word) => word === '-p' || word === '--print')
  )
    return undefined;
  const state = join(folder, '.claude.json');
  const seed = ruleset.seeds.find(({ to }) => to === state)?.from;
  if (approvedIn(existsSync(state) ? state : seed).includes(key.slice(-TAIL))) return undefined;
  return `the agent will ask whether it may use ANTHROPIC_API_KEY, and the answer is held back inside: start it once outside with CLAUDE_CONFIG_DIR=${folder} and say yes`;
}

function approvedIn(file: string | undefined): unknown[] {
  try {
    const state = JSON.parse(readFileSync(file ?? '', 'utf8')) as { customApiKeyResponses?: { approved?: unknown } };
    const approved = state.customApiKeyResponses?.approved;
    return Array.isArray(approved) ? (approved as unknown[]) : [];
  } catch {
    return [];
  }
}
