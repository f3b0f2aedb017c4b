import { existsSync } from 'node:fs';
import { basename, join, resolve } from 'node:path';
import { isatty } from 'node:tty';
import type { Learnt, PolicyDocument } from '@nd7/policy';
import type { Command } from 'commander';
import { CliError, type Io } from '../cli/io.js';
import { safeLine as safe } from '../show/safe.js';
import { ProfileFile } from './learn-file.js';
import { agentOf, attached } from './run.js';

interface LearnOptions {
  profile?: string;
  write?: string;
  force?: boolean;
  include: string[];
  network: string;
  agent?: string;
}

/** `nd7 learn -- CMD…`: a command run inside, and the smallest profile by which it can do that again. */
export function register(program: Command, io: Io): void {
  program
    .command('learn')
    .description('run a command inside and write the smallest profile that covers what it does')
    .argument('<command...>', 'the program and its arguments, after --')
    .option('--profile <name>', 'the rules in force meanwhile: default, or one that was learned before')
    .option(
      '--write <name>',
      'a name: $ND7_HOME/profiles/NAME.jsonc, for nd7 run --profile NAME; or the path of a file',
    )
    .option('--force', 'write over a file that is there')
    .option(
      '--include <item>',
      'take in something that is held back, as it was listed (may be repeated)',
      (item: string, all: string[]) => [...all, item],
      [] as string[],
    )
    .option(
      '--network <which>',
      'open: every public host passes and is noted; profile: only what the rules list',
      'open',
    )
    .option('--agent <name>', 'what the program is: claude-code, codex, or none')
    .addHelpText(
      'after',
      `
The boundary of nd7 run holds meanwhile, by the profile that is named: what it hides stays hidden, what it does not let be written is not
written. What the command wanted of that is held back for you, and --include takes it in, for this run and in the profile. Hosts are let pass
by name, never private addresses; --network profile closes that too. What is looked at is told, not decided (docs/policy.md, "Learning").
Where something was refused that the profile now has, the command may do more the next time: run nd7 learn again with --profile NAME.
The profile is printed on stderr where --write is left out; --json prints one JSON object on stderr. What was learned until Ctrl-C is kept.
The program's exit code is nd7's; 2 and a message when nothing could be started.`,
    )
    .action((command: string[], options: LearnOptions) => learnFrom(command, options, io));
}

async function learnFrom(command: string[], options: LearnOptions, io: Io): Promise<void> {
  if (options.network !== 'open' && options.network !== 'profile')
    throw new CliError(2, `there is no --network ${options.network}`, 'Say open or profile.');
  const file = fileFor(options, io);
  const [{ runSession }, { endAs }, { inputFor, told }, { projectOf }, { Learning, learnFacts }, policy, { homeOf }] =
    await Promise.all([
      import('../confine/run-session.js'),
      import('../confine/signals.js'),
      import('../confine/ruleset.js'),
      import('../confine/project.js'),
      import('../confine/learning.js'),
      import('@nd7/policy'),
      import('../policy/here.js'),
    ]);
  const home = homeOf(io);
  const found = await agentOf(command, options.agent, home, io);
  const policies = told(() =>
    inputFor({
      profile: options.profile ?? null,
      agent: found?.name,
      home,
      project: projectOf(io.cwd, home),
      nd7Home: io.home,
      environment: io.env,
    }),
  );
  const { ruleset } = told(() => {
    const taken = policy.policyOfItems(options.include, policies.places);
    const session = policy.readPolicy(JSON.stringify(opened(taken, options.network === 'open')), 'nd7 learn', 'learn');
    return policy.compile({ ...policies, session: { ...policies.session, policy: session } });
  });
  // Only where it cannot stand in the middle of what the program prints.
  const progress = isatty(1) ? undefined : io.progress('learning', 'items');
  const learning = new Learning(ruleset, (paths, hosts) => progress?.update(paths + hosts));
  const attachment = found && (await attached(command, found, ruleset, io));
  const result = (): Learnt =>
    policy.learn({ policies, ...learning.found, include: options.include, facts: learnFacts() });
  const written = file === undefined ? undefined : ProfileFile.open(file, options.force === true);
  let learnt: Learnt | undefined;
  const ended = await runSession({
    ruleset,
    argv: command,
    attachment,
    nd7Home: io.home,
    environment: io.env,
    cwd: io.cwd,
    learning,
    warn: (text) => io.err(`nd7: ${safe(text)}`),
    decided: () => undefined,
    started: () => undefined,
    beforeEnd: async (record) => {
      learnt = result();
      const { document, held } = learnt;
      await record.note(
        'learn',
        { profile: document, held: held.map(({ item }) => item), file: file ?? null },
        'what was learned',
      );
    },
  }).catch((error: unknown) => {
    written?.abandon();
    throw error;
  });
  progress?.end();
  if (learnt !== undefined) {
    const text = policy.profileText(learnt.document, learnt.held, basename(command[0] ?? ''));
    written?.write(text);
    tell(learnt, { text, file, isCut: learning.isCut, code: ended.code }, io);
  } else written?.abandon();
  endAs(ended);
}

/** For this session alone: what was taken in, and the hosts that may be learned of. */
function opened(taken: PolicyDocument, isOpen: boolean): PolicyDocument {
  if (!isOpen) return taken;
  return { ...taken, network: { ...taken.network, allow: [...(taken.network?.allow ?? []), '*:*'] } };
}

function fileFor({ write: name, force }: LearnOptions, io: Io): string | undefined {
  if (name === undefined) return undefined;
  const isName = /^[A-Za-z0-9][A-Za-z0-9_-]*$/.test(name);
  const file = isName ? join(io.home, 'profiles', `${name}.jsonc`) : resolve(io.cwd, name);
  if (existsSync(file) && force !== true)
    throw new CliError(2, `${file} is there already`, 'Choose another name, or say --force.');
  return file;
}

function tell(
  { document, held, widened }: Learnt,
  { text, file, isCut, code }: { text: string; file: string | undefined; isCut: boolean; code: number | null },
  io: Io,
): void {
  if (io.isJson) {
    io.err(JSON.stringify({ profile: document, held, widened, file: file ?? null, complete: !isCut, code }));
    return;
  }
  if (file === undefined) io.err(text.trimEnd());
  else io.err(`nd7: written: ${file}`);
  for (const { item, why, programs } of held)
    io.err(
      `nd7: held back: ${safe(item)} (${safe(why)}${programs.length === 0 ? '' : `; ${safe(programs.join(', '))}`})`,
    );
  if (held.length > 0) io.err('nd7: --include ITEM takes one in');
  if (widened.length > 0)
    io.err(
      `nd7: refused this time, and in the profile: ${safe(widened.join(', '))}. Learn again with --profile to see what comes after it`,
    );
  if (isCut) io.err('nd7: it did more than could be kept: the profile does not cover all of it');
}
