import type { Command } from 'commander';
import type { SettingsChange } from '@nd7/hooks';
import { CliError } from '../cli/io.js';
import type { Io } from '../cli/io.js';
import type { FrontLink } from '../recorder/front.js';
import type { Scope } from '../recorder/settings-paths.js';

interface InitOptions {
  project?: boolean;
  managed?: boolean;
  settings?: string;
  command: boolean;
  yes?: boolean;
  dryRun?: boolean;
}

/** `nd7 init`: attaches nd7 to Claude Code's hooks. */
export function register(program: Command, io: Io): void {
  program
    .command('init')
    .description('record Claude Code: attach to its hooks (shows the change first)')
    .option('--project', 'attach in this project (.claude/settings.json) instead of for this user')
    .option('--managed', 'attach for everybody on this machine, where no project setting reaches (needs root)')
    .option('--settings <file>', 'attach in this settings file')
    .option('--no-command', 'leave PATH alone: no link to nd7 in ~/.local/bin')
    .option('-y, --yes', 'write without asking')
    .option('-n, --dry-run', 'show the change and write nothing')
    .action((options: InitOptions) => init(io, options));
}

async function init(io: Io, options: InitOptions): Promise<void> {
  const scope = scopeOf(options);
  const { installClaudeCode, planClaudeCode, CLAUDE_EVENTS } = await import('@nd7/hooks');
  const { settingsPath } = await import('../recorder/settings-paths.js');
  const { hookCommand, plannedCommand } = await import('../recorder/hook-command.js');
  const path = options.settings ?? settingsPath(scope, io.env, io.cwd);
  // Both steps that can fail for the user's own reasons come before anything is written: the settings as they are, the home.
  const plan = planClaudeCode(path, plannedCommand(io.home, 'claude-code', scope));
  await noteOthers(io, path);
  const { frontPath, installFront, planFrontLink } = await import('../recorder/front.js');
  // Whoever attaches in a file of their own, or for everybody, has said where nd7 is to be.
  const wantsCommand = options.command && scope !== 'managed' && options.settings === undefined;
  const link = wantsCommand ? planFrontLink(io.home, io.env) : undefined;
  if (plan.changed) await show(io, plan);
  const made = link?.state === 'make' ? link.path : undefined;
  if (made !== undefined && !io.isJson) io.out(io.paint('green', `+ ${visible(made)} -> ${frontPath(io.home)}`));
  if (options.dryRun === true) return report(io, { ...plan, scope, written: false, link });
  const files = [...(plan.changed ? [path] : []), ...(made === undefined ? [] : [made])];
  if (files.length > 0 && options.yes !== true && !(await agreed(io, files.join(' and '))))
    throw new CliError(1, 'nothing was changed', 'run `nd7 init --yes` to write without being asked');

  const { machineKey, openHome } = await import('@nd7/journal');
  const { readConfig } = await import('../recorder/config.js');
  const { closedToOthers, writeManagedConf, writeShimConf } = await import('../recorder/settings.js');
  const closed = scope === 'managed' ? closedToOthers() : undefined;
  if (closed !== undefined)
    throw new CliError(
      1,
      `other users of this machine cannot get at ${closed}, so their hooks could start nothing`,
      'put Node and nd7 where everybody can run them, such as /opt/nd7, and run it from there',
    );
  const { shimPossible } = await import('../recorder/shim.js');
  if (scope === 'managed' && !shimPossible())
    throw new CliError(
      1,
      'there is no shim, and no C compiler to build it: a Node process obeys NODE_OPTIONS, which a project’s settings may set',
      'install a C compiler, or attach for yourself with `nd7 init`',
    );
  const home = openHome(io.home);
  machineKey(home);
  writeShimConf(home.root, readConfig(home.root).recording);
  const command = await hookCommand(io.home, 'claude-code', scope);
  if (scope === 'managed' && command.shim !== undefined)
    writeManagedConf(command.shim, readConfig(home.root).recording);
  const change = installClaudeCode({ settingsPath: path, hook: command.hook, home: io.home });
  const front = link && (await installed(() => installFront(io.home, link)));
  report(io, { ...change, scope, written: change.changed, shim: command.shim, problem: command.problem, link });
  if (io.isJson) return;
  const events = Object.values(CLAUDE_EVENTS).filter((event) => event.register).length;
  io.out(
    change.changed
      ? `Attached to Claude Code: ${events} hook events in ${path}.`
      : `Already attached in ${path}; nothing to change.`,
  );
  if (link !== undefined && front !== undefined) io.out(sayFront(link, front));
  if (command.problem !== undefined)
    io.out(io.paint('yellow', `The hook runs as a Node process (slower): ${command.problem}.`));
  if (scope === 'project')
    io.out(
      'The command names a path of this machine: keep this settings file out of what others check out, or use `nd7 init` without --project.',
    );
  const kept = scope === 'managed' ? 'each user’s ~/.nd7' : io.home;
  io.out(
    `Sessions are kept in ${kept}. Next: start claude as always, then \`nd7 sessions\`. \`nd7 doctor\` proves that the hooks fire.`,
  );
}

type Front = { path: string } | { problem: string };

/** Being attached does not hang on it. */
async function installed(install: () => Promise<Front>): Promise<Front> {
  try {
    return await install();
  } catch (error) {
    return { problem: error instanceof Error ? error.message : String(error) };
  }
}

function sayFront({ path, state, isOnPath }: FrontLink, front: Front): string {
  if ('problem' in front) return `nd7 is not put on PATH: ${front.problem}.`;
  if (state === 'foreign') return `${path} is another program and stays: ${front.path} is nd7.`;
  if (state === 'closed') return `${path} cannot be made, its folder is read-only: ${front.path} is nd7.`;
  const hint = isOnPath ? '' : ' Its folder is not on your PATH yet: export PATH="$HOME/.local/bin:$PATH"';
  return `${state === 'make' ? 'The command is' : 'The command stays'} ${path}.${hint}`;
}

function scopeOf(options: InitOptions): Scope {
  if (options.project === true && options.managed === true)
    throw new CliError(2, '--project and --managed exclude each other');
  if (options.settings !== undefined && (options.project === true || options.managed === true))
    throw new CliError(2, '--settings names the file itself: leave --project and --managed out');
  if (options.managed === true && process.geteuid?.() !== 0)
    throw new CliError(1, 'managed settings belong to root', 'run it as root: sudo nd7 init --managed');
  return options.managed === true ? 'managed' : options.project === true ? 'project' : 'user';
}

/** Two registrations of one command run once, but they have to be removed twice: say so. */
async function noteOthers(io: Io, path: string): Promise<void> {
  const { attachedFiles } = await import('@nd7/hooks');
  const others = attachedFiles(io.home).filter((file) => file !== path);
  if (others.length > 0 && !io.isJson)
    io.err(
      `Note: nd7 is attached in ${others.join(', ')} already. Claude Code runs the same hook once; \`nd7 uninstall\` removes all of them.`,
    );
}

/** The change, a line each. A hook is longer than a terminal is wide: there lines are cut, so that all of them are seen at once. */
async function show(io: Io, change: SettingsChange): Promise<void> {
  if (io.isJson) return;
  const { diffLines } = await import('@nd7/hooks');
  const { fit } = await import('../show/safe.js');
  let isCut = false;
  io.out(io.paint('bold', change.before === undefined ? `${change.path} (new)` : change.path));
  for (const { mark, text } of diffLines(change.before ?? '', change.after ?? '')) {
    const whole = `${mark} ${visible(text)}`;
    const line = io.isTerminal ? fit(whole, io.columns) : whole;
    isCut ||= line !== whole;
    io.out(mark === '+' ? io.paint('green', line) : mark === '-' ? io.paint('red', line) : io.paint('dim', line));
  }
  if (isCut)
    io.out(io.paint('dim', '(cut to the width of the terminal; `nd7 init --dry-run | less` shows whole lines)'));
}

async function agreed(io: Io, path: string): Promise<boolean> {
  if (io.isJson || !io.isTerminal || process.stdin.isTTY !== true)
    throw new CliError(
      2,
      `nothing was changed: ${path} is to be written, and there is nobody to ask`,
      'add --yes to write, or --dry-run to look',
    );
  const { confirm } = await import('@inquirer/prompts');
  return confirm({ message: `Write this to ${path}?`, default: true });
}

function report(
  io: Io,
  result: SettingsChange & {
    scope: Scope;
    written: boolean;
    shim?: string | undefined;
    problem?: string | undefined;
    link?: FrontLink | undefined;
  },
): void {
  if (!io.isJson) {
    if (!result.written && result.changed) io.out('Nothing was written (--dry-run).');
    return;
  }
  io.json({
    settings: result.path,
    scope: result.scope,
    changed: result.changed,
    written: result.written,
    home: io.home,
    shim: result.shim ?? null,
    command: result.link === undefined ? null : { path: result.link.path, state: result.link.state },
    ...(result.problem === undefined ? {} : { shim_problem: result.problem }),
    ...(result.written ? {} : { before: result.before ?? null, after: result.after ?? null }),
  });
}

/** Text of a file shown on a terminal: control characters cannot act. */
function visible(text: string): string {
  return text.replace(
    /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/g,
    (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}
