import { assemble, load, when } from './bpf.js';
import { allowedCalls, type Architecture } from './syscalls.js';
import { ALLOW, ARCHITECTURE, AUDIT_ARCH, NUMBER, TERMINAL_INPUT, X32, argument, oneOf, refuse } from './terms.js';

const ARCHITECTURES: Readonly<Record<string, Architecture>> = { x64: 'x86_64', arm64: 'aarch64' };

/**
 * What nd7 puts on a box of another program's, at the terminal of the person: nothing is typed there for them. All other calls are the box's own
 * matter. `arch` as Node names it; undefined for one that there is no filter for. Other architectures and x32 get ENOSYS: their numbers are others.
 */
export function terminalFilter(arch: string): Uint8Array | undefined {
  const architecture = ARCHITECTURES[arch];
  if (architecture === undefined) return undefined;
  const ioctl = allowedCalls(architecture).get('ioctl') as number;
  const typed = load(argument(1), oneOf(TERMINAL_INPUT, refuse('EPERM'), ALLOW));
  const calls = when('equal', ioctl, typed, ALLOW);
  const native = architecture === 'x86_64' ? when('atLeast', X32, refuse('ENOSYS'), calls) : calls;
  return assemble(load(ARCHITECTURE, when('equal', AUDIT_ARCH[architecture], load(NUMBER, native), refuse('ENOSYS'))));
}
