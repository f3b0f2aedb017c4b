// Says a payload to nd7 as an agent does: through the shim that `nd7 init` installs, through Node where there is no C compiler.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { runProgram, type Result } from './programs.js';
import type { Stack } from './stack.js';

export function sayToHook(stack: Pick<Stack, 'home' | 'programs'>, payload: string): Promise<Result> {
  const shim = join(stack.home, 'bin', 'nd7-shim');
  if (!existsSync(shim)) return stack.programs.nd7(['hook', '--agent', 'claude-code'], payload);
  return runProgram(shim, ['--home', stack.home, '--agent', 'claude-code'], {
    env: stack.programs.env,
    input: payload,
  });
}
