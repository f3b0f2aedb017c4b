import { findLauncher, namespaceRefusal, probeKernel } from '@nd7/confine';
import type { Check } from '../recorder/checks.js';

/** Whether `nd7 run` can confine here: each step of tier T1 is tried. A note where it cannot: recording does not rest on it. */
export async function boundary(): Promise<Check> {
  const name = 'boundary';
  if (process.platform === 'darwin')
    return {
      name,
      state: 'note',
      text: 'nd7 run confines by Seatbelt here, which nobody has tried yet (docs/limits.md)',
    };
  if (process.platform !== 'linux')
    return { name, state: 'note', text: `nd7 run confines on Linux, not on ${process.platform}` };
  const launcher = await findLauncher();
  if ('problem' in launcher) return { name, state: 'note', text: `nd7 run cannot confine: ${launcher.problem}` };
  const facts = probeKernel(launcher.path);
  const works = facts.namespaces === 'ok' || facts.namespacesAsRoot === 'ok';
  if (works && facts.landlock > 0)
    return {
      name,
      state: 'ok',
      text: `nd7 run confines in tier T1 (Linux ${facts.kernel}, Landlock ${facts.landlock})`,
    };
  const missing = works ? 'the kernel has no Landlock' : `namespaces are refused (${facts.namespaces})`;
  const next = works
    ? 'a kernel of 5.13 or later with landlock in its list of security modules (lsm=…)'
    : namespaceRefusal();
  return { name, state: 'note', text: `nd7 run cannot confine: ${missing}`, ...(next === undefined ? {} : { next }) };
}
