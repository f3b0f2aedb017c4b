// `nd7 hook --agent NAME`: one payload on stdin, what the client is to be told on stdout. It is what the shim stands for, and runs in
// an agent's tool call: nothing is loaded before it is needed.
import { nd7Home } from '../recorder/home-path.js';
import { askRecorder } from '../recorder/client.js';
import type { Answer } from '../recorder/frames.js';
import { readPayload } from '../recorder/stdin.js';

/** Environment variables of the hook that adapters read, handed to the recorder. */
const PASSED = [
  'CLAUDE_CODE_SESSION_ID',
  'CLAUDE_PID',
  'CLAUDE_PROJECT_DIR',
  'CLAUDE_CONFIG_DIR',
  'CLAUDE_CODE_ENTRYPOINT',
];
/** The recorder answers in milliseconds; a hanging one must not hang the agent. */
const ANSWER_MS = 10_000;

/** Exit code of the hook: 0, or what the recorder's answer says. A usage mistake is 1, which no client takes for a refusal. */
export async function main(argv: readonly string[]): Promise<number> {
  const options = parse(argv.slice(3));
  if (typeof options === 'string') {
    const isHelp = options === HELP;
    (isHelp ? process.stdout : process.stderr).write(`${options}\n`);
    return isHelp ? 0 : 1;
  }
  const home = options.home ?? nd7Home();
  const { payload, took } = await readPayload(process.stdin);
  const env = Object.fromEntries(
    PASSED.flatMap((name) => (process.env[name] === undefined ? [] : [[name, process.env[name]]])),
  ) as Record<string, string>;
  // The shim calls this in its place after it has looked for a recorder itself: asking again would only take time.
  const alone = options.alone || process.env['ND7_SHIM'] !== undefined;
  const answer =
    (alone ? undefined : await ask(home, options.agent, env, payload, options.took ?? took)) ??
    (await recordAlone(home, { ...options, alone }, env, payload, options.took ?? took));
  process.stdout.write(answer.stdout);
  process.stderr.write(answer.stderr);
  return answer.exit;
}

function ask(
  home: string,
  agent: string,
  env: Record<string, string>,
  payload: Uint8Array,
  took: string,
): Promise<Answer | undefined> {
  const meta: Record<string, string> = { agent, ppid: String(process.ppid), took };
  for (const [name, value] of Object.entries(env)) meta[`env.${name}`] = value;
  return askRecorder(home, 'hook', { meta, payload, timeoutMs: ANSWER_MS });
}

async function recordAlone(
  home: string,
  options: Options,
  env: Record<string, string>,
  payload: Uint8Array,
  took: string,
): Promise<Answer> {
  const fallBack = await import('../recorder/alone.js');
  return fallBack.recordAlone({ home, agent: options.agent, env, payload, took, startRecorder: !options.alone });
}

interface Options {
  agent: string;
  home: string | undefined;
  /** How reading ended, as the shim that read it says. */
  took: string | undefined;
  /** Append under the lock and neither ask nor start a recorder. */
  alone: boolean;
}

const USAGE = 'usage: nd7 hook --agent NAME [--home FOLDER] [--alone] < payload';
const HELP = `Usage: nd7 hook --agent NAME [options] < payload

take one hook payload on stdin: what an agent is told to run, and what the shim stands for

Options:
  --agent <name>   who speaks: claude-code or codex
  --home <folder>  where nd7 keeps its files (default: $ND7_HOME, ~/.nd7)
  --alone          write the entry here, under the session's lock, and neither ask nor start a recorder
  -h, --help       show help

What it prints and its exit code are for the agent, in the agent's own words: nothing and 0, or a refusal where recording is required and failed
(0 with JSON, or 2, as the event has it). 1 is for a command line that is not understood, which no agent takes for a refusal.`;

function parse(args: readonly string[]): Options | string {
  const options: Options = { agent: '', home: undefined, took: undefined, alone: false };
  for (let at = 0; at < args.length; at++) {
    const [name, inline] = (args[at] ?? '').split(/=(.*)/s, 2);
    if (name === '--help' || name === '-h') return HELP;
    if (name === '--alone') options.alone = true;
    else if (name === '--agent') options.agent = inline ?? args[++at] ?? '';
    else if (name === '--took') options.took = inline ?? args[++at];
    else if (name === '--home') options.home = inline ?? args[++at];
    else return `nd7 hook: ${args[at]} is not known; ${USAGE}`;
  }
  if (options.agent.startsWith('-')) return `nd7 hook: ${options.agent} is no name of an agent; ${USAGE}`;
  return options.agent === '' ? `nd7 hook: --agent is missing; ${USAGE}` : options;
}
