import { join } from 'node:path';
import type { Scope } from './settings-paths.js';

/** Where the shim of a scope lies: under the user's home, or where every user can run it. */
export function shimPath(home: string, scope: Scope): string {
  return scope === 'managed' ? '/usr/local/lib/nd7/nd7-shim' : join(home, 'bin', 'nd7-shim');
}

export function builtShim(): { path: string } | { problem: string } {
  return { problem: 'the shim is not built' };
}

export function installShim(_home: string, _scope: Scope): { path: string } | { problem: string } {
  return builtShim();
}

/** How the shim of a home stands. */
export type ShimState = { kind: 'fine'; path: string } | { kind: 'absent' | 'broken'; problem: string; next: string };

export function shimState(_home: string): ShimState {
  return { kind: 'absent', problem: 'the shim is not built', next: 'install a C compiler' };
}
