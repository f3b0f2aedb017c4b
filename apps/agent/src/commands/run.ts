import { basename, join } from 'node:path';
import type { PlanTier } from '@nd7/confine';
import type { Ruleset } from '@nd7/policy';
import type { Command } from 'commander';
import { CliError, type Io } from '../cli/io.js';
import type { Attachment } from '../confine/attach.js';
import type { AgentName, FoundAgent } from '../confine/attach-agent.js';
import type { Boundary } from '../confine/boundary.js';
import { ENGINES } from '../confine/box-engine.js';
import type { Box } from '../confine/run-in-box.js';
import type { RunRequest } from '../confine/session-request.js';
import { userSettingsFolder } from '../recorder/settings-paths.js';
import { safeLine } from '../show/safe.js';

interface RunOptions {
  profile?: string;
  agent?: string;
  tier: string;
  broker: boolean;
  in?: string;
  inArg?: string[];
  image?: string;
  verbose?: boolean;
  allow: string[];
  without: string[];
}

const BOXES = ['bwrap', ...ENGINES] as const;

/** `nd7 run -- CMD…`: a program inside a boundary that the kernel holds. */
export function register(program: Command, io: Io): void {
  program
    .command('run')
    .description(
      'run a program inside a boundary: it writes the project, sees no secrets and gets out to listed hosts only',
    )
    .argument('<command...>', 'the program and its arguments, after --')
    .option('--profile <name>', 'the rules: default, offline or review, in place of what your policy extends')
    .option(
      '--tier <tier>',
      'the kind of boundary: T1 (namespaces, mounts, Landlock, call filter), T2 (no namespaces and mounts), T3 (Landlock and call filter alone: weaker, and never taken unasked), or auto: the strongest here that the rules take',
      'auto',
    )
    .option(
      '--agent <name>',
      'what the program is: claude-code, codex, or none; found out from its file where this is left out',
    )
    .option(
      '--allow <what>',
      'besides what your policy allows: read:PATH, write:PATH, net:HOST[:PORT], socket:NAME; may be repeated',
      (what: string, all: string[]) => [...all, what],
      [],
    )
    .option(
      '--without <property>',
      'start although this property does not hold here, which your rules require (may be repeated; not what a team requires)',
      (property: string, all: string[]) => [...all, property],
      [] as string[],
    )
    .option(
      '--in <box>',
      'a box of another program around it in place of nd7’s own boundary: bwrap, docker, podman or gvisor (docker with runsc). nd7 records and is the way out, and says nothing of what the box holds',
    )
    .option(
      '--in-arg <argument>',
      'your own arguments for that box, word by word (may be repeated); for bwrap a view in place of the policy’s: --in-arg=--bind --in-arg=/ --in-arg=/',
      (argument: string, all: string[] = []) => [...all, argument],
    )
    .option('--image <image>', 'what docker, podman or gvisor make the box of: an image that is there already')
    .option('--no-broker', 'let the agent run its commands itself: they are not seen one by one')
    .option('-v, --verbose', 'print the enforcement manifest on stderr before the program starts')
    .addHelpText(
      'after',
      `
Everything that the program starts is inside too, and ends with it. Nothing is started unless the boundary held when it was attacked from
inside. The network is what the proxy lets through; each of its answers is recorded. What would run or be trusted outside later is not made or
changed, there or not at the start; what was refused is recorded, and told at the end at a terminal or with --verbose. docs/limits.md
Claude Code and Codex (also by path, npx, node or a wrapper) are recorded as after nd7 init, for this session and without a change to your
settings; their own sandbox is off, since the boundary is around all of them, and their own --settings and --append-system-prompt hold too.
The chains of the session (run-…) and of the agent name each other. Where managed settings, --bare or --safe-mode would switch the hooks off,
nothing is started (exit 2): docs/recorder.md, "Inside a boundary".
The program's exit code is nd7's; 2 and a message when this system cannot give what the rules require. --json prints the manifest as one
JSON object on stderr.`,
    )
    .action((command: string[], options: RunOptions) => run(command, options, io));
}

async function run(command: string[], options: RunOptions, io: Io): Promise<void> {
  const tier = tierOf(options.tier);
  const box = boxOf(options);
  const [{ runSession }, { endAs }, { summary }, { rulesetFor }, { projectOf }, { grantedSummary }, { notify }] =
    await Promise.all([
      import('../confine/run-session.js'),
      import('../confine/signals.js'),
      import('../confine/mediate.js'),
      import('../confine/ruleset.js'),
      import('../confine/project.js'),
      import('../grants/print.js'),
      import('../grants/notify.js'),
    ]);
  const home = io.env['HOME'];
  if (home === undefined || home === '') throw new CliError(2, 'HOME is not set', 'Set it to your home folder.');
  const found = await agentOf(command, options.agent, home, io);
  const project = projectOf(io.cwd, home);
  const { policyFor } = await import('../grants/wanted.js');
  const { typedSpec } = await import('../grants/typed.js');
  const allowed = options.allow.map((spec) => typedSpec(io, spec));
  const {
    ruleset: said,
    notes,
    policies,
  } = rulesetFor({
    session: allowed.length === 0 ? null : policyFor('command line', allowed),
    profile: options.profile ?? null,
    agent: found?.name,
    home,
    project,
    nd7Home: io.home,
    environment: io.env,
    tier,
    tmp: process.platform === 'darwin' ? (await import('../confine/session-tmp.js')).sessionTmp() : undefined,
  });
  const ruleset = options.without.length === 0 ? said : { ...said, required: requiredBut(said, options.without) };
  for (const { kind, text } of notes) if (kind !== 'without-effect') io.err(`nd7: ${safeLine(text)}`);
  const attachment = found && (await attached(command, found, ruleset, io, options.broker && box === undefined));
  for (const text of attachment?.notes ?? []) io.err(`nd7: ${safeLine(text)}`);
  const session: RunRequest = {
    tier,
    ruleset,
    policies,
    argv: command,
    attachment,
    front: io.front,
    nd7Home: io.home,
    environment: io.env,
    cwd: io.cwd,
    warn: (text) => io.err(`nd7: ${safeLine(text)}`),
    decided: (tallies, granted) => {
      // Beside the program's own output only where a person reads it, or has asked.
      if (!io.isJson && (options.verbose === true || io.isTty(2)))
        for (const line of [...summary(tallies), ...grantedSummary(granted, join(io.home, 'policy.jsonc'))])
          io.err(`nd7: ${line}`);
    },
    asked: (request, outside) => notify(request, { project, isTold: options.verbose === true, outside }, io),
    started: (boundary) => {
      if (options.verbose === true || io.isJson) show(boundary, io);
    },
  };
  const ended =
    box === undefined
      ? await runSession(session)
      : await (await import('../confine/run-in-box.js')).runInBox(session, box);
  if (io.front !== undefined) return io.front.end(ended);
  endAs(ended);
}

/** What must hold, but for what the person does without. */
function requiredBut({ required }: Ruleset, without: readonly string[]): Ruleset['required'] {
  for (const name of without) {
    const of = required.find(({ property }) => property === name);
    if (of === undefined)
      throw new CliError(
        2,
        `your rules do not require "${name}"`,
        `They require ${required.map(({ property }) => property).join(', ')}.`,
      );
    if (of.source.layer === 'team')
      throw new CliError(2, `the team’s policy requires "${name}"`, 'Nobody at this machine can do without it.');
  }
  return required.filter(({ property }) => !without.includes(property));
}

/** The box that is asked for. Throws `CliError` for one that nd7 does not know, and for what is said of one that is not asked for. */
function boxOf({ in: said, inArg: args, image, tier }: RunOptions): Box | undefined {
  const kind = BOXES.find((one) => one === said);
  if (said !== undefined && kind === undefined)
    throw new CliError(2, `there is no box "${said}" here`, `Say --in ${BOXES.join(', ')}.`);
  if (kind === undefined) {
    if (args === undefined && image === undefined) return undefined;
    throw new CliError(
      2,
      `${args === undefined ? '--image' : '--in-arg'} needs a box`,
      `Say --in ${BOXES.join(', ')}.`,
    );
  }
  if (tier !== 'auto')
    throw new CliError(
      2,
      '--tier says how nd7 confines, and in a box of another program it does not',
      'Say one of the two.',
    );
  if (kind === 'bwrap') {
    if (image === undefined) return { kind, args };
    throw new CliError(2, 'bwrap makes its box of no image', 'Leave --image out.');
  }
  if (image === undefined)
    throw new CliError(2, `${kind} needs an image`, 'Say --image NAME[:TAG], of one that is there.');
  return { kind, image, args };
}

/** Throws `CliError` for what is no tier here. */
export function tierOf(said: string): PlanTier | 'auto' {
  if (said === 'T1' || said === 'T2' || said === 'T3' || said === 'auto') return said;
  throw new CliError(2, `there is no tier "${said}"`, 'Leave --tier out, or say T1, T2, T3 or auto.');
}

const AGENTS: readonly AgentName[] = ['claude-code', 'codex'];

/** The agent that a command starts, as its file or the person says. */
export async function agentOf(
  command: readonly string[],
  said: string | undefined,
  home: string,
  io: Io,
): Promise<FoundAgent | undefined> {
  const name = AGENTS.find((one) => one === said);
  if (said !== undefined && said !== 'none' && name === undefined)
    throw new CliError(2, `there is no agent "${said}" here`, `Say ${AGENTS.join(', ')} or none.`);
  if (said === 'none') return undefined;
  const { findAgent } = await import('../confine/attach-agent.js');
  const found = findAgent(command, { cwd: io.cwd, path: io.env['PATH'] ?? '', home });
  // Where the file does not say, its arguments are taken to begin behind it.
  if (name !== undefined) return found?.name === name ? found : { name, at: 0 };
  const called = basename(command[0] ?? '');
  if (found === undefined && ['claude', 'codex'].includes(called))
    io.err(
      `nd7: ${called} is not the agent of that name as far as its file says: it is started without hooks (--agent ${called === 'claude' ? 'claude-code' : 'codex'} says that it is)`,
    );
  return found;
}

export async function attached(
  argv: readonly string[],
  found: FoundAgent,
  ruleset: Ruleset,
  io: Io,
  isBrokered = false,
): Promise<Attachment> {
  const [{ attach }, { hiddenLogin, unapprovedKey }] = await Promise.all([
    import('../confine/attach.js'),
    import('../confine/attach-login.js'),
  ]);
  const settings = ruleset.environment.set.find(({ name }) => name === 'CLAUDE_CONFIG_DIR')?.value;
  const attachment = attach({
    argv,
    found,
    nd7Home: io.home,
    project: ruleset.project,
    settings: settings ?? userSettingsFolder(io.env),
    environment: io.env,
    cwd: io.cwd,
    isBrokered,
  });
  const own = argv.slice(found.at + 1);
  const key = found.name === 'claude-code' && io.isTty(0) ? unapprovedKey(ruleset, io.env, own) : undefined;
  const login = hiddenLogin(found.name, ruleset, io.env);
  return { ...attachment, notes: [...attachment.notes, key, login].filter((note) => note !== undefined) };
}

/** On stderr: stdout is the program's. */
function show({ tier, landlock, rows, shortfalls, session }: Boundary, io: Io): void {
  if (io.isJson) {
    io.err(JSON.stringify({ tier, landlock, session, properties: rows, shortfalls }));
    return;
  }
  io.err(`nd7: tier ${tier}, Landlock ${landlock}${session === undefined ? '' : `, recorded as ${session}`}`);
  for (const { property, status, provider, proofs, limit } of rows) {
    const shown = proofs.filter(({ verdict }) => verdict === 'held').map(({ name }) => name);
    io.err(
      `  ${status.padEnd(7)} ${property.padEnd(19)} ${provider === '' ? '–' : provider}${shown.length > 0 ? ` (shown: ${shown.join(', ')})` : ''}`,
    );
    if (limit !== undefined) io.err(`          ${''.padEnd(19)} ${limit}`);
  }
  const absent = shortfalls.filter(({ what }) => what === 'missing').length;
  if (absent > 0) io.err(`  note    ${absent} paths of the policy are not there (--json names them)`);
  for (const { path, what } of shortfalls) if (what !== 'missing') io.err(`  note    ${safeLine(path)}: ${what}`);
}
