// `nd7 run` beside doing without it, and beside others: what a start costs (the launcher alone, and the command as it is typed), what work costs
// inside against outside, what the proxy costs against going directly, and the broker of commands against none. Contenders take turns in one run.
// Musts: launcher at most 1.0 × bwrap; nd7 run at most one start of Node + 15 ms; work at most 1.10 ×; the proxy at most 1.15 ×; a command
// of the broker at most 4 ms more.
import { parseArgs } from 'node:util';
import { measureCommands } from './confine/commands.mjs';
import { measureProxy } from './confine/proxied.mjs';
import { Place } from './confine/place.mjs';
import { measureStarts } from './confine/starts.mjs';
import { measureWork, TIERS } from './confine/work.mjs';

const PARTS = ['starts', 'work', 'proxy', 'broker'];
const usage = `usage: node tools/bench/confine.mjs [--rounds 20] [--part ${PARTS.join('|')}] [--tier ${TIERS.join('|')}]
  --tier: what part work compares with outside, T1 where nothing is said; T2-strict is T2 with "patterns": "strict"`;

function options() {
  try {
    const { values } = parseArgs({
      options: {
        rounds: { type: 'string', default: '20' },
        part: { type: 'string', multiple: true, default: PARTS },
        tier: { type: 'string', multiple: true, default: ['T1'] },
      },
    });
    const rounds = Number(values.rounds);
    const isKnown =
      values.part.every((part) => PARTS.includes(part)) && values.tier.every((one) => TIERS.includes(one));
    if (Number.isSafeInteger(rounds) && rounds >= 2 && isKnown)
      return { rounds, parts: values.part, tiers: [...new Set(values.tier)] };
  } catch {
    // Said below.
  }
  console.error(usage);
  process.exit(2);
}

const { rounds, parts, tiers } = options();
if (process.platform !== 'linux') console.log(`skipped: nd7 run confines on Linux, not on ${process.platform}`);
else {
  // The temporary folder may be written in: without a mount view every open is asked about where something is hidden in it, as in this home.
  const place = new Place(tiers.every((tier) => tier === 'T1') ? undefined : '/var/tmp');
  try {
    if (parts.includes('starts')) await measureStarts(place, rounds);
    if (parts.includes('work')) await measureWork(place, rounds / 20, tiers);
    if (parts.includes('proxy')) await measureProxy(place, rounds / 20);
    if (parts.includes('broker')) await measureCommands(place, rounds);
  } catch (error) {
    if (!place.isOver) throw error; // What was ended fails where it stood.
  } finally {
    await place.close();
  }
}
