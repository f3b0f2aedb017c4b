// What `npm start`, `npm test`, `npm run tour` and `npm run bench` may be told: read before anything is installed or built, so that who asks
// for help or mistypes an option waits for neither. It imports nothing but Node itself.
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';

const RUNGS = ['url', 'container', 'system', 'embedded'];
const FLAG = { type: 'boolean' };
const TEXT = { type: 'string' };

const TASKS = {
  start: {
    help: () => `npm start [-- OPTIONS]   record, ship, sign and verify a session here, and show it in the dashboard

  --fresh          begin anew: forget the data of earlier starts
  --postgres RUNG  take this PostgreSQL: ${RUNGS.join(', ')} (also ND7_POSTGRES)
  --port N         first port to try for the vault and the dashboard (4170; also ND7_PORT)
  --once           end after the steps instead of staying up
  --help           this text`,
    options: { fresh: FLAG, postgres: TEXT, port: TEXT, once: FLAG },
    wrong: ({ postgres, port }) => {
      if (postgres !== undefined && !RUNGS.includes(postgres)) return `--postgres takes ${RUNGS.join(', ')}`;
      if (!isPort(port ?? process.env.ND7_PORT)) return '--port and ND7_PORT take a number from 1 to 65435';
      return undefined;
    },
  },
  test: {
    help: () => `npm test [-- OPTIONS] [PROJECT…]   lint, type check and all tests (or those of the projects named)

  --skip-lint    only the tests
  --no-cache     run what is unchanged too
  --help         this text`,
    options: { 'skip-lint': FLAG, 'no-cache': FLAG },
    names: true,
  },
  tour: {
    help: () => `npm run tour [-- OPTIONS]   record a session, rewrite it, and see who notices

  --pause MS   wait that long between the scenes, to read along (0)
  --stay       leave vault and dashboard up at the end, to look at the incident
  --help       this text

ND7_PORT names the port before the first one to try (4170).`,
    options: { pause: TEXT, stay: FLAG },
    wrong: ({ pause }) => {
      if (pause !== undefined && !/^[0-9]{1,6}$/.test(pause)) return '--pause takes milliseconds';
      return isPort(process.env.ND7_PORT) ? undefined : 'ND7_PORT takes a number from 1 to 65435';
    },
  },
  bench: {
    help: (root) => `npm run bench [-- NAME…]   measure, and compare with what must be reached

  NAME     ${benches(root).join(', ')} (all when none is named)
  --help   this text

Ends with 1 when something that must be reached was not.`,
    options: {},
    names: true,
    wrong: (_, names, root) => {
      const known = benches(root);
      const unknown = names.filter((name) => !known.includes(name));
      return unknown.length > 0
        ? `no benchmark called ${unknown.join(', ')}; there are ${known.join(', ')}`
        : undefined;
    },
  },
};

/** The tasks there are. */
export const NAMES = Object.keys(TASKS);

/** What a task was told: its options and names, or a text to print and the exit code to end with. */
export function readOptions(task, args, root) {
  const { help, options, names = false, wrong } = TASKS[task];
  const mistake = (message) => ({ print: `nd7: ${message}\n${help(root)}`, code: 2 });
  let parsed;
  try {
    parsed = parseArgs({
      args,
      options: { ...options, help: { type: 'boolean', short: 'h' } },
      allowPositionals: names,
    });
  } catch (error) {
    // Of several sentences the first says what is wrong; the others say how to pass what no task here takes.
    return mistake(error.message.split('. ')[0]);
  }
  if (parsed.values.help) return { print: help(root), code: 0 };
  const problem = wrong?.(parsed.values, parsed.positionals, root);
  return problem === undefined ? { values: parsed.values, names: parsed.positionals } : mistake(problem);
}

function isPort(text) {
  return text === undefined || (/^[0-9]{1,5}$/.test(text) && Number(text) >= 1 && Number(text) <= 65_435);
}

function benches(root) {
  return readdirSync(join(root, 'tools', 'bench'))
    .filter((name) => name.endsWith('.mjs'))
    .map((name) => name.slice(0, -4))
    .sort();
}
