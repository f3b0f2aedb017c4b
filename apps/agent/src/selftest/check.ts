import { existsSync } from 'node:fs';
import { release } from 'node:os';
import { rulesetHash } from '@nd7/policy';
import { VERSION } from '../cli/version.js';
import { projectOf } from '../confine/project.js';
import { rulesetFor } from '../confine/ruleset.js';
import type { Check, Surroundings } from '../recorder/checks.js';
import { isSame, kept, type Kept } from './kept.js';

/** When `nd7 selftest` last attacked the boundary of this kernel, policy and version, and what came out. */
export function selftested({ home, env, cwd }: Surroundings): Check {
  const name = 'selftest';
  if (process.platform !== 'linux')
    return { name, state: 'note', text: 'there is no boundary here that could be attacked' };
  const ruleset = hashOf(home, env, cwd);
  const all = existsSync(home) ? kept(home) : [];
  const at = { version: VERSION, kernel: release() };
  const found = all.find((one) => isSame(one, { ...at, ruleset: ruleset ?? one.ruleset }));
  const next = 'nd7 selftest';
  if (found === undefined)
    return {
      name,
      state: 'note',
      text:
        all.length === 0
          ? 'the boundary of nd7 run was never attacked here'
          : 'the boundary of nd7 run was not attacked with this kernel, policy and version of nd7',
      next,
    };
  return found.counts['not-held'] > 0
    ? { name, state: 'bad', text: `attempts got out of the boundary of nd7 run: ${told(found)}`, next }
    : { name, state: 'ok', text: `the boundary of nd7 run was attacked: ${told(found)}` };
}

function told({ counts, time }: Kept): string {
  const gaps = counts['not-held'] > 0 ? `, ${counts['not-held']} not` : '';
  return `${counts.held} attempts held${gaps}, ${new Date(time).toISOString().slice(0, 16).replace('T', ' ')} UTC`;
}

/** The ruleset of `nd7 run` in this folder; undefined where it would start nothing: then any policy's result is told. */
function hashOf(nd7Home: string, environment: NodeJS.ProcessEnv, cwd: string): string | undefined {
  const home = environment['HOME'];
  if (home === undefined || home === '') return undefined;
  try {
    const project = projectOf(cwd, home);
    return rulesetHash(rulesetFor({ profile: null, agent: undefined, home, project, nd7Home, environment }).ruleset);
  } catch {
    return undefined;
  }
}
