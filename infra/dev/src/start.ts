// `npm start`: the main job from the hook to a verified receipt, step by step, and then a vault and a dashboard to look at.
import { existsSync, readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join, resolve } from 'node:path';
import { RUNGS } from '@nd7/postgres';
import { capturedSession } from './captures.js';
import { problem, type Programs } from './programs.js';
import { sayToHook } from './hook.js';
import { bringUp, type Stack } from './stack.js';
import { paint, say, step, StepFailed } from './steps.js';

/** What `npm start` was told; infra/dev/options.mjs has read and checked it. */
interface StartOptions {
  fresh?: boolean;
  postgres?: string;
  port?: string;
  once?: boolean;
}

/** The captured scenarios that make up the recorded sessions. */
const SCENARIOS = ['basic', 'subagent'];

/** Where the demo keeps its data: ND7_DEV_DIR, else .nd7-dev in the checkout. */
function devDir(root: string): string {
  const named = process.env['ND7_DEV_DIR'];
  return named === undefined || named === '' ? join(root, '.nd7-dev') : resolve(named);
}

export async function main(root: string, values: StartOptions): Promise<number> {
  const rung = RUNGS.find((one) => one === values.postgres);
  const port = Number(values.port ?? process.env['ND7_PORT'] ?? 4170);
  const interrupted = new Promise<void>((done) => {
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => done());
  });
  let stack: Stack | undefined;
  try {
    stack = await bringUp({
      root,
      dataDir: devDir(root),
      port,
      fresh: values.fresh === true,
      durable: true,
      ...(rung === undefined ? {} : { rung }),
    });
    const link = await walk(root, stack, values.once !== true);
    if (values.once !== true) {
      say(`\n${paint('dim', `Ctrl-C ends it; the data stays in ${devDir(root)} and the next start goes on with it.`)}`);
      say(`\n${paint('bold', 'Look at the session')}   ${link}`);
      await interrupted;
      say('\nEnding …');
    }
    return 0;
  } catch (error) {
    if (!(error instanceof StepFailed))
      process.stderr.write(`nd7: ${error instanceof Error ? error.message : String(error)}\n`);
    const log = join(devDir(root), 'vault.log');
    if (existsSync(log)) process.stderr.write(`The vault's log is ${log}; \`npm start -- --fresh\` begins anew.\n`);
    return 1;
  } finally {
    await stack?.stop();
  }
}

/** Records, ships and verifies; answers with the link to the last session. */
async function walk(root: string, stack: Stack, stays: boolean): Promise<string> {
  let last = '';
  for (const scenario of SCENARIOS) {
    const { session, payloads } = capturedSession(root, scenario);
    last = session;
    await step(
      `Recorded: real hook payloads of Claude Code (${scenario})`,
      () => record(stack, payloads),
      () => `${payloads.length} payloads, session ${session}`,
    );
    await step(
      'Shipped to the vault, receipts checked',
      () => ship(stack.programs, session),
      (shipped) => shipped,
    );
    await step(
      'Re-verified: chain, seals, receipts',
      () => verify(stack.programs, session),
      (words) => words,
    );
  }
  const query = `#token=${encodeURIComponent(stack.reader)}&pin=${encodeURIComponent(stack.vkey)}`;
  const path = `/machines/${stack.machine}/sessions/${last}`;
  say(`
${paint('bold', 'Record your own Claude Code')}   npx --no nd7 init
                              ${stays ? await enrolment(stack) : 'npm start         (without --once: the vault to enrol at ends with this)'}
                              then start claude anywhere; npx --no nd7 uninstall undoes it
${paint('bold', 'See what is recorded')}          npx --no nd7 sessions          (of the steps above: ND7_HOME="${stack.home}" npx --no nd7 sessions)
${paint('bold', 'Verify it yourself')}            ND7_HOME="${stack.home}" npx --no nd7 verify --all --receipts
${paint('bold', 'See rewriting caught')}          npm run tour`);
  return `${stack.url}/sign-in${query}&to=${encodeURIComponent(path)}`;
}

/** What enrols the home that a person records into, unless it is enrolled here already. */
async function enrolment(stack: Stack): Promise<string> {
  const path = join(nd7Home(), 'vault.json');
  const isHere = existsSync(path) && readFileSync(path, 'utf8').includes(JSON.stringify(stack.vkey));
  if (isHere) return `(${path} ships here already)`;
  const { token } = await stack.programs.json('vault', ['enrolment', 'create', '--team', stack.team]);
  return `npx --no nd7 enrol ${stack.url} ${String(token)}${existsSync(path) ? ' --replace' : ''}`;
}

/** Where `nd7` of this terminal keeps its recordings. */
function nd7Home(): string {
  return process.env['ND7_HOME'] ?? join(homedir(), '.nd7');
}

/** Each payload as the agent would hand it over: one process per hook, in order. */
async function record(stack: Stack, payloads: readonly string[]): Promise<void> {
  for (const payload of payloads) {
    const result = await sayToHook(stack, payload);
    if (result.code !== 0) throw new Error(problem(result));
  }
}

async function ship(programs: Programs, session: string): Promise<string> {
  const { sessions } = (await programs.json('nd7', ['ship', session])) as {
    sessions: { entries: number; acknowledged: number }[];
  };
  const [shipped] = sessions;
  if (shipped === undefined) throw new Error('nothing was shipped');
  return `${shipped.acknowledged} of ${shipped.entries} entries under receipts`;
}

async function verify(programs: Programs, session: string): Promise<string> {
  const { verdict, report } = (await programs.json('nd7', ['verify', session, '--receipts'])) as {
    verdict: string;
    report: { entries: number; receipts: { result: string; to: number }[] };
  };
  if (verdict !== 'intact') throw new Error(`the verdict is ${verdict}`);
  const held = report.receipts.filter(({ result }) => result === 'holds');
  if (held.length === 0 || held.length < report.receipts.length) {
    throw new Error(`${report.receipts.length - held.length} of ${report.receipts.length} receipts do not hold`);
  }
  return `verified, ${report.entries} entries intact, ${held.length} receipts hold, to entry ${Math.max(...held.map(({ to }) => to)) - 1}`;
}
