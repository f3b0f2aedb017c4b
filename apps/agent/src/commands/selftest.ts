import type { Command } from 'commander';
import { CliError, type Io, type Style } from '../cli/io.js';
import type { Selftest } from '../selftest/selftest.js';
import type { Judged, Verdict } from '../selftest/judge.js';
import { safeLine } from '../show/safe.js';
import { tierOf } from './run.js';

interface SelftestOptions {
  tier: string;
  profile?: string;
  agent?: string;
}

/** `nd7 selftest`: attacks the boundary that `nd7 run` makes here. */
export function register(program: Command, io: Io): void {
  program
    .command('selftest')
    .description('try to get out of the boundary that nd7 run makes here, and say what held')
    .option('--profile <name>', 'the rules: default, offline or review, in place of what your policy extends')
    .option('--tier <tier>', 'the kind of boundary: T1, T2, T3, or auto, as nd7 run takes it', 'auto')
    .option('--agent <name>', 'with what your policy adds for an agent: claude-code or codex')
    .addHelpText(
      'after',
      `
Each attempt is made twice: inside the boundary, and outside by a twin, which has to succeed: else the row says "not shown here". What became of it
is looked for outside: a file that changed, a connection that came, a process that ended. What is aimed at is made for the run in folders of its
own (.nd7-selftest-… in your home folder, the project and the temporary folders) and taken away afterwards; nothing of yours is touched.
Exit codes: 0 nothing got out but what the manifest admits, 1 something did, 2 no boundary can be made here. The result is recorded in a chain of
its own (nd7 log), and nd7 doctor tells when the last one was. It does not show that there are no other ways: docs/limits.md

Examples:
  nd7 selftest                    the boundary of the project that you are in, by your policy
  nd7 selftest --profile offline  by another profile
  nd7 selftest --json | jq '.attacks[] | select(.verdict == "not-held")'`,
    )
    .action((options: SelftestOptions) => run(options, io));
}

async function run(options: SelftestOptions, io: Io): Promise<void> {
  const [{ selftest, Interrupted }, { rulesetFor }, { projectOf }, { endAs }] = await Promise.all([
    import('../selftest/selftest.js'),
    import('../confine/ruleset.js'),
    import('../confine/project.js'),
    import('../confine/signals.js'),
  ]);
  const tier = tierOf(options.tier);
  const home = io.env['HOME'];
  if (home === undefined || home === '') throw new CliError(2, 'HOME is not set', 'Set it to your home folder.');
  const agent = (['claude-code', 'codex'] as const).find((name) => name === options.agent);
  if (options.agent !== undefined && agent === undefined)
    throw new CliError(2, `there is no agent "${options.agent}" here`, 'Say claude-code or codex.');
  const { ruleset, notes, policies } = rulesetFor({
    profile: options.profile ?? null,
    agent,
    home,
    project: projectOf(io.cwd, home),
    nd7Home: io.home,
    environment: io.env,
    tier,
  });
  for (const { kind, text } of notes) if (kind !== 'without-effect') io.err(`nd7: ${safeLine(text)}`);
  const progress = io.progress('attacking');
  try {
    const result = await selftest({
      tier,
      ruleset,
      policies,
      nd7Home: io.home,
      environment: io.env,
      cwd: io.cwd,
      warn: (text) => io.err(`nd7: ${safeLine(text)}`),
      progress: (done, total) => progress.update(done, total),
    });
    progress.end();
    if (result.counts['not-held'] > 0) io.setExit(1);
    if (io.isJson) io.json(asJson(result));
    else print(result, io);
  } catch (error) {
    progress.end();
    if (error instanceof Interrupted) endAs({ code: null, signal: error.signal, failure: undefined });
    throw error;
  }
}

function asJson({ boundary, kernel, ruleset, judged, counts }: Selftest): Record<string, unknown> {
  const { tier, landlock, session } = boundary;
  return {
    ...{ tier, landlock, kernel, ruleset, session },
    counts: {
      held: counts.held,
      admitted: counts.admitted,
      not_held: counts['not-held'],
      not_shown: counts['not-shown'],
      skipped: counts.skipped,
    },
    attacks: judged.map(({ name, property, tried, verdict, why }) => ({ name, property, tried, verdict, why })),
  };
}

const WORDS: Record<Verdict, [word: string, style: Style]> = {
  held: ['held', 'green'],
  admitted: ['admitted', 'yellow'],
  'not-held': ['NOT HELD', 'red'],
  'not-shown': ['not shown', 'yellow'],
  skipped: ['skipped', 'yellow'],
};

function print({ boundary, kernel, judged, counts }: Selftest, io: Io): void {
  const { tier, landlock, session, rows } = boundary;
  io.out(
    `tier ${tier}, Landlock ${landlock}, Linux ${kernel}${session === undefined ? '' : `, recorded as ${session}`}`,
  );
  for (const { property } of rows) {
    const own = judged.filter((one) => one.property === property);
    io.out(io.paint('bold', property) + (own.length === 0 ? ': nothing is tried' : ''));
    for (const one of own) line(one, io);
  }
  const gaps = counts['not-held'];
  io.out();
  io.out(
    `${judged.length} attempts: ${counts.held} held, ${counts.admitted} admitted by the manifest, ${gaps} NOT held, ${counts['not-shown']} not shown here, ${counts.skipped} skipped.`,
  );
  if (gaps > 0)
    io.out(
      io.paint('red', 'Something got out.') +
        ' See by nd7 policy show whether your rules allow it; where they do not, please report it.',
    );
}

function line({ name, tried, verdict, why }: Judged, io: Io): void {
  const [word, style] = WORDS[verdict];
  io.out(`  ${io.paint(style, word.padEnd(9))}  ${name.padEnd(24)} ${tried}`);
  // What was refused is told by --json; a person looks at the rest.
  if (verdict !== 'held') io.out(`  ${''.padEnd(9)}  ${''.padEnd(24)} ${safeLine(why)}`);
}
