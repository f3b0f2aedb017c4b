import type { Command } from 'commander';
import type { Change, Explanation, Note } from '@nd7/policy';
import { CliError, type Io } from '../cli/io.js';
import { ruleText } from './why.js';

interface Which {
  profile?: string;
  for?: string;
}

/** `nd7 policy …`: the rules as they are here, what is wrong or wide in them, what changes, and whom one trusts. */
export function register(program: Command, io: Io): void {
  const policy = program
    .command('policy')
    .description('the rules of confined sessions: show, check, compare and trust them');
  const sub = (name: string, description: string): Command =>
    policy.command(name).description(description).option('--json', 'print one JSON object instead of text');
  const which = (command: Command): Command =>
    command
      .option('--profile <name>', 'the rules, in place of what your policy extends')
      .option('--for <program>', 'the program that would be run: claude and codex bring their pack');
  which(sub('show', 'print the rules that hold here')).action((options: Which) => show(options, false, io));
  which(sub('explain', 'the same, with the policy and line behind each')).action((options: Which) =>
    show(options, true, io),
  );
  which(sub('diff', 'what your policies change in the default profile'))
    .option('--from <profile>', 'the profile to compare with', 'default')
    .action((options: Which & { from: string }) => compare(options, io));
  sub('check', 'read and compile policies: those that hold here, or a file as if it were yours')
    .argument('[file]', 'a policy file')
    .action((file: string | undefined) => check(file, io));
  sub('pull', 'fetch the team’s policy from the vault, and keep it where it stands').action(() => pull(io));
  sub('trust', 'accept this version of the project’s policy, so that it may widen too')
    .option('--yes', 'without being asked')
    .action((options: { yes?: boolean }) => trustProject(options.yes === true, io));
  sub('distrust', 'take that back: the project’s policy only narrows').action(() => distrustProject(io));
}

async function show({ profile, for: program }: Which, withRules: boolean, io: Io): Promise<void> {
  const { rulesetHere } = await import('../policy/here.js');
  const { explain, rulesetHash } = await import('@nd7/policy');
  const { safeLine } = await import('../show/safe.js');
  const { ruleset, notes } = rulesetHere(io, profile ?? null, program ?? '');
  const sections = explain(ruleset);
  if (io.isJson) {
    io.json({
      project: ruleset.project,
      hash: rulesetHash(ruleset),
      layers: ruleset.layers,
      sections: sections.map(asJson),
      notes: notes.map(noteJson),
    });
    return;
  }
  for (const { title, statements } of sections) {
    io.out(io.paint('bold', title));
    const width = Math.min(48, Math.max(...statements.map(({ what }) => what.length)));
    for (const { what, text, source } of statements) {
      io.out(`  ${safeLine(what).padEnd(width)}  ${safeLine(text)}`);
      if (withRules && source !== null) io.out(io.paint('dim', `  ${''.padEnd(width)}  ${safeLine(ruleText(source))}`));
    }
    io.out();
  }
  for (const note of notes) io.out(`${note.kind}: ${safeLine(note.text)}`);
}

function asJson({ title, statements }: Explanation): object {
  return {
    title,
    statements: statements.map(({ what, text, source }) => ({ what, text, rule: source && ruleText(source) })),
  };
}

function noteJson({ kind, text, source }: Note): object {
  return { kind, text, rule: ruleText(source) };
}

async function compare({ profile, for: program, from }: Which & { from: string }, io: Io): Promise<void> {
  const { policiesHere, rulesetHere } = await import('../policy/here.js');
  const { compile, diff, isBuiltin } = await import('@nd7/policy');
  if (!isBuiltin(from))
    throw new CliError(2, `nd7 brings no profile "${from}"`, 'There are default, offline, review and secrets.');
  const { ruleset } = rulesetHere(io, profile ?? null, program ?? '');
  // All else the same: what the environment moves is no change of a policy.
  const base = { ...policiesHere(io, from, program ?? ''), user: null, project: null };
  await printChanges(diff(compile(base).ruleset, ruleset), io);
}

async function printChanges(changes: Change[], io: Io): Promise<void> {
  if (io.isJson) {
    io.json({ changes: changes.map(({ source, ...change }) => ({ ...change, rule: source && ruleText(source) })) });
    return;
  }
  const { safeLine } = await import('../show/safe.js');
  if (changes.length === 0) io.out('nothing changes');
  for (const { about, what, before, after, widens, narrows, source } of changes) {
    const mark = widens && narrows ? '~' : widens ? '+' : '-';
    io.out(
      `${io.paint(widens ? 'yellow' : 'green', mark)} ${about} ${safeLine(what)}: ${safeLine(before ?? 'nothing')} → ${safeLine(after ?? 'nothing')}`,
    );
    if (source !== null) io.out(io.paint('dim', `    ${safeLine(ruleText(source))}`));
  }
  if (changes.length > 0) io.out(io.paint('dim', '+ may allow more   - may allow less   ~ either'));
}

async function check(file: string | undefined, io: Io): Promise<void> {
  const { checkFile } = await import('../policy/check.js');
  const { rulesetHere } = await import('../policy/here.js');
  const { safeLine } = await import('../show/safe.js');
  const { notes } = file === undefined ? rulesetHere(io, null, '') : checkFile(file, io);
  if (io.isJson) {
    io.json({ file: file ?? null, notes: notes.map(noteJson) });
    return;
  }
  for (const note of notes) {
    io.out(`${note.kind}: ${safeLine(note.text)}`);
    io.out(io.paint('dim', `    ${safeLine(ruleText(note.source))}`));
  }
  io.out(notes.length === 0 ? 'good' : 'good, with what stands above');
}

async function pull(io: Io): Promise<void> {
  const [{ pullTeamPolicy }, { machineKey, openHome }, { systemClock, systemRandom }, { asCliError }] =
    await Promise.all([
      import('@nd7/ship'),
      import('@nd7/journal'),
      import('@nd7/signing'),
      import('../shipping/errors.js'),
    ]);
  try {
    const home = openHome(io.home);
    const { version, changed } = await pullTeamPolicy({
      home: home.root,
      signer: machineKey(home),
      clock: systemClock,
      random: systemRandom,
    });
    if (io.isJson) io.json({ version: version ?? null, changed });
    else if (version === undefined) io.out('the team has no policy');
    else
      io.out(
        changed
          ? `version ${version} of the team’s policy holds from the next session on`
          : `version ${version} is what is kept here`,
      );
  } catch (error) {
    throw asCliError(error);
  }
}

async function trustProject(yes: boolean, io: Io): Promise<void> {
  const { projectPolicy } = await import('../policy/check.js');
  const { trust } = await import('../policy/trusted.js');
  const { project, hash, isTrusted, changes } = projectPolicy(io);
  if (!isTrusted && !yes) {
    if (io.isJson || !io.isTerminal || process.stdin.isTTY !== true)
      throw new CliError(2, 'nobody is here to be asked', 'Look at `nd7 policy check`, then say --yes.');
    await printChanges(changes, io);
    const { confirm } = await import('@inquirer/prompts');
    if (!(await confirm({ message: 'Trust this version of the project’s policy?', default: false }))) return;
  }
  trust(io.home, { project, hash });
  if (io.isJson) io.json({ project, hash, trusted: true });
  else io.out(`trusted: ${hash.slice(0, 16)}… of ${project}; a changed file is untrusted again`);
}

/** Whatever lies there now: a policy that is gone or broken may come back as it was. */
async function distrustProject(io: Io): Promise<void> {
  const { homeOf } = await import('../policy/here.js');
  const { projectOf } = await import('../confine/project.js');
  const { distrust } = await import('../policy/trusted.js');
  const project = projectOf(io.cwd, homeOf(io));
  const hash = distrust(io.home, project);
  if (io.isJson) io.json({ project, hash, trusted: false });
  else io.out(`the policy of ${project} only narrows now`);
}
