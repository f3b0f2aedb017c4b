// One developer's machine, on which the policies that nd7 brings are tried.
import { compile } from './compile.js';
import { accessAt, decideHost } from './decide.js';
import type { PolicyDocument } from './document.js';
import { parseHost } from './host.js';
import type { Host } from './host.js';
import type { CompileInput } from './parts.js';
import { builtinPolicy } from './read.js';
import type { Ruleset } from './ruleset.js';

export const HOME = '/home/dev';
export const PROJECT = `${HOME}/code/app`;
export const input: CompileInput = {
  places: {
    home: HOME,
    project: PROJECT,
    tmp: '/tmp',
    nd7Home: `${HOME}/.nd7`,
    variables: { SSH_AUTH_SOCK: '/tmp/ssh-x/agent.1', XDG_RUNTIME_DIR: '/run/user/1000' },
  },
  user: null,
  project: null,
  team: null,
  session: { profile: null, packs: [], policy: null },
  grants: [],
  files: new Map(),
};
export const withUser = (document: Omit<PolicyDocument, 'nd7'>, more: Partial<CompileInput> = {}): Ruleset =>
  compile({ ...input, user: builtinPolicy('user', { nd7: 1, ...document }), ...more }).ruleset;
export const base = compile(input).ruleset;
export const rights = (ruleset: Ruleset, path: string): string => {
  const { read, write, exec } = accessAt(ruleset, path);
  return `${read ? 'r' : '-'}${write ? 'w' : '-'}${exec ? 'x' : '-'}`;
};
export const reached = (ruleset: Ruleset, host: string, port = 443): boolean =>
  decideHost(ruleset.network, parseHost(host) as Host, port).allow;
