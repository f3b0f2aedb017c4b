// `npm run tour`: rewriting is caught, step by step, for somebody who watches. Everything happens in a folder of its own.
import { chmodSync, cpSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { capturedSession } from './captures.js';
import type { Programs, Result } from './programs.js';
import { editOneByte, readLines, rewriteChain } from './rewrite.js';
import { sayToHook } from './hook.js';
import { bringUp, type Stack } from './stack.js';
import { paint, say, StepFailed } from './steps.js';

/** What `npm run tour` was told; infra/dev/options.mjs has read and checked it. */
interface TourOptions {
  pause?: string;
  stay?: boolean;
}

export async function main(root: string, values: TourOptions): Promise<number> {
  const interrupted = new Promise<void>((done) => {
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => done());
  });
  const dataDir = mkdtempSync(join(tmpdir(), 'nd7-tour-'));
  chmodSync(dataDir, 0o711); // else root's cluster, which runs as another user, lies beside it and is left behind
  let stop: (() => Promise<void>) | undefined;
  try {
    say(paint('bold', 'A vault, a database and a machine to try it on'));
    const stack = await bringUp({
      root,
      dataDir,
      port: Number(process.env['ND7_PORT'] ?? 4170) + 1,
      fresh: true,
      durable: false,
    });
    stop = stack.stop;
    const scenes = new Scenes(stack.programs, Number(values.pause ?? 0));
    await play(root, stack, scenes);
    const link = `${stack.url}/sign-in#token=${encodeURIComponent(stack.reader)}&pin=${encodeURIComponent(stack.vkey)}&to=${encodeURIComponent('/incidents')}`;
    if (values.stay === true) {
      say(`\nThe incident, with both heads: ${link}\nCtrl-C ends it.`);
      await interrupted;
    } else {
      say(`\n\`npm run tour -- --stay\` leaves the dashboard up, where the incident shows both heads.`);
    }
    return scenes.surprises === 0 ? 0 : 1;
  } catch (error) {
    if (!(error instanceof StepFailed))
      process.stderr.write(`nd7: ${error instanceof Error ? error.message : String(error)}\n`);
    return 1;
  } finally {
    await stop?.();
    rmSync(dataDir, { recursive: true, force: true });
  }
}

/** Shows a command, what it printed, and whether it ended as the tour says it must. */
class Scenes {
  surprises = 0;
  private number = 0;

  constructor(
    private readonly programs: Programs,
    private readonly pause: number,
  ) {}

  async title(text: string): Promise<void> {
    if (this.pause > 0) await new Promise((next) => setTimeout(next, this.pause));
    say(`\n${paint('bold', `${(this.number += 1)}. ${text}`)}`);
  }

  surprise(text: string): void {
    this.surprises += 1;
    say(paint('red', `   This is not what the tour expected: ${text}`));
  }

  async run(args: readonly string[], expected: { code: number; says?: RegExp }): Promise<Result> {
    say(paint('dim', `   $ nd7 ${args.join(' ')}`));
    const result = await this.programs.nd7(args);
    for (const line of `${result.stdout}${result.stderr}`.trimEnd().split('\n')) say(`   ${line}`);
    const text = result.stdout + result.stderr;
    if (result.code !== expected.code || (expected.says !== undefined && !expected.says.test(text))) {
      this.surprise(
        `exit ${expected.code}${expected.says === undefined ? '' : ` and ${String(expected.says)}`}, got exit ${result.code}`,
      );
    }
    return result;
  }
}

/** An entry that an agent's forger would want to change: the first command it said it would run. */
function firstCommand(lines: readonly string[]): number {
  const at = lines.findIndex((line) => line.includes('"kind":"tool.before"') && line.includes('"command"'));
  if (at < 0) throw new Error('the recorded session has no command in it');
  return at;
}

async function play(root: string, stack: Stack, scenes: Scenes): Promise<void> {
  const { home, programs } = stack;
  const { session, payloads } = capturedSession(root, 'basic');
  const half = Math.ceil(payloads.length / 2);

  await scenes.title('A session is recorded from real payloads of Claude Code, and shipped');
  for (const payload of payloads.slice(0, half)) await sayToHook(stack, payload);
  await scenes.run(['ship', session], { code: 0 });
  await scenes.run(['verify', session, '--receipts'], { code: 0 });

  const lines = readLines(home, session);
  const target = firstCommand(lines);
  const original = join(home, '..', 'kept');
  cpSync(join(home, 'sessions', session), original, { recursive: true });

  await scenes.title(`One byte of entry ${target} is changed on disk`);
  await programs.nd7(['recorder', '--stop']);
  editOneByte(home, session, target);
  await scenes.run(['verify', session], {
    code: 1,
    says: new RegExp(`\\b${target + 1}\\b.*wrong-prev|wrong-prev.*\\b${target + 1}\\b`, 's'),
  });

  await scenes.title(
    'A better forger: the whole chain, every seal and the head are written anew with the machine’s own key',
  );
  cpSync(join(original, 'log.jsonl'), join(home, 'sessions', session, 'log.jsonl'));
  rewriteChain(home, session, (seq, rest) =>
    seq === target ? rest.replace(/"command":"[^"]*/, '"command":"echo nothing to see here') : rest,
  );
  say('   The local chain is whole again, and says what that is worth:');
  await scenes.run(['verify', session], { code: 0, says: /local head|rests on/i });

  await scenes.title('The receipts were given for other bytes');
  await scenes.run(['verify', session, '--receipts'], { code: 1, says: /receipt-mismatch/ });

  await scenes.title('He throws the receipts away, works on, and ships the rewritten session');
  rmSync(join(home, 'sessions', session, 'receipts'), { recursive: true, force: true });
  rmSync(join(home, 'outbox', session), { recursive: true, force: true });
  for (const payload of payloads.slice(half)) await sayToHook(stack, payload);
  await programs.nd7(['recorder', '--stop']);
  await scenes.run(['ship', session], { code: 1, says: /fork|409/ });

  await scenes.title('The vault keeps both claims, signs a fork leaf, and raises an incident');
  await showIncident(stack, session, scenes);
}

interface Incident {
  id: string;
  kind: string;
  session: string;
  count?: number;
  leaf_index?: number;
  claims?: { from: number; to: number; prev: string; head: string }[];
}

/** What the dashboard shows of the fork, asked from the vault with a reader's token. */
async function showIncident(stack: Stack, session: string, scenes: Scenes): Promise<void> {
  const answer = await fetch(`${stack.url}/v1/incidents`, { headers: { authorization: `Bearer ${stack.reader}` } });
  const { incidents } = (await answer.json()) as { incidents: Incident[] };
  const fork = incidents.find((one) => one.kind === 'fork' && one.session === session);
  if (fork?.claims?.length !== 2)
    return scenes.surprise(`no fork incident with two claims: ${JSON.stringify(incidents)}`);
  say(`   incident ${fork.id}: fork at ${String(fork.count)} entries, leaf ${String(fork.leaf_index)} of the log`);
  for (const claim of fork.claims)
    say(
      `   claim of entries ${claim.from} to ${claim.to}: prev ${claim.prev.slice(0, 16)}… head ${claim.head.slice(0, 16)}…`,
    );
}
