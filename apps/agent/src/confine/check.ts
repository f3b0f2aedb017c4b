import { findLauncher, namespaceRefusal, probeKernel, RESOLVES_UNIX, tiersOf } from '@nd7/confine';
import type { Check, Surroundings } from '../recorder/checks.js';
import { safeLine } from '../show/safe.js';
import { newsOf } from '../recorder/kept-names.js';

/** Whether `nd7 run` can confine here: each step of its tiers is tried. A note where it cannot: recording does not rest on it. */
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
  const { given, refused } = tiersOf(facts);
  const kernel = `Linux ${facts.kernel}, Landlock ${facts.landlock}`;
  const not = refused.map(({ tier, why }) => `${tier}: ${why}`).join('; ');
  const next =
    facts.landlock === 0
      ? 'a kernel of 5.13 or later with landlock in its list of security modules (lsm=…)'
      : given.includes('T1')
        ? undefined
        : namespaceRefusal();
  const mend = next === undefined ? {} : { next };
  // The weakest is never taken unasked.
  const [strongest] = given.filter((tier) => tier !== 'T3');
  if (strongest === undefined && given.length > 0)
    return {
      name,
      state: 'note',
      text: `nd7 run confines in tier T3 alone (${kernel}), which is taken only by --tier T3 or "weakestTier": "T3" in your policy: protected names are then compared and not held, the network is held by ports${facts.landlock < RESOLVES_UNIX ? ', and unix sockets are closed' : ''}; not in ${not}`,
      ...mend,
    };
  if (strongest === undefined) return { name, state: 'note', text: `nd7 run cannot confine: ${not}`, ...mend };
  const also = given.length > 1 ? `, and in ${given.slice(1).join(', ')} where it is asked for` : '';
  const text = `nd7 run confines in tier ${strongest}${also} (${kernel})${not === '' ? '' : `; not in ${not}`}`;
  return { name, state: strongest === 'T1' ? 'ok' : 'note', text, ...mend };
}

/** Protected names that sessions have changed whose nd7 was killed: compared since, and told of nobody. None where there is nothing to say. */
export function killed({ home }: Surroundings): Check[] {
  return newsOf(home).map(({ session, lines }) => ({
    name: 'killed session',
    state: 'note',
    text: `${safeLine(session)}: ${lines.map((line) => safeLine(line.trim())).join('; ')}`,
    next: `look at what stands there before you work in that folder; nd7 log ${safeLine(session)}`,
  }));
}
