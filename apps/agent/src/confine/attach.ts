import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { claudeHooks, findClaudeHooks, type HookCommand } from '@nd7/hooks';
import { CliError } from '../cli/io.js';
import { plannedCommand } from '../recorder/hook-command.js';
import { silencedBy } from '../recorder/settings-watch.js';
import type { AgentName, FoundAgent } from './attach-agent.js';
import { codexArguments, codexShell, PASSWD } from './attach-codex.js';
import { readManaged } from './attach-managed.js';
import { DOOR } from './door.js';
import { findShell, shellVariables } from './shell.js';

/** How an agent is started so that it speaks through the door of its session. Nothing of the user's is written for it. */
export interface Attachment {
  agent: AgentName;
  argv: readonly string[];
  /** The shell with which it runs commands, where these are brokered: undefined where they are not. */
  shell: string | undefined;
  /** The password file as the agent is to see it, where it takes its shell from there. */
  passwd?: string;
  /** To be laid beside the door's socket, by name. */
  files: Readonly<Record<string, string>>;
  /** What a person should know before the start. */
  notes: readonly string[];
}

export interface AttachInput {
  argv: readonly string[];
  found: FoundAgent;
  nd7Home: string;
  project: string;
  /** Folder of the client's settings inside. */
  settings: string;
  environment: NodeJS.ProcessEnv;
  cwd: string;
  /** Whether its commands are to be run by the broker. */
  isBrokered?: boolean;
}

/** Throws `CliError` (2) where the agent would run without its hooks. */
export function attach(input: AttachInput): Attachment {
  return input.found.name === 'claude-code' ? attachClaude(input) : attachCodex(input);
}

const SETTINGS = 'settings.json';
const NO_HOOKS = 'Leave it out, or say --agent none to run without a record of what the agent does.';
/** Options and variables of Claude Code that skip its hooks (measured on 2.1.332). */
const SKIPS = ['--bare', '--safe-mode'];
const SKIP_VARIABLES = ['CLAUDE_CODE_SIMPLE', 'CLAUDE_CODE_SAFE_MODE'];
const OFF = ['', '0', 'false', 'no', 'off'];

function attachClaude({
  argv,
  found,
  nd7Home,
  project,
  settings,
  environment,
  cwd,
  isBrokered,
}: AttachInput): Attachment {
  const own = argv.slice(found.at + 1);
  const end = own.indexOf('--');
  const options = end < 0 ? own : own.slice(0, end);
  const skip =
    options.find((option) => SKIPS.includes(option)) ??
    SKIP_VARIABLES.find((name) => !OFF.includes((environment[name] ?? '').toLowerCase()));
  if (skip !== undefined)
    throw new CliError(
      2,
      `${skip} makes Claude Code skip its hooks: nothing of it would be recorded`,
      NO_HOOKS,
      'silenced',
    );
  const managed = readManaged(nd7Home);
  if (managed.silence !== undefined)
    throw new CliError(
      2,
      `"${managed.silence.what}" in ${managed.silence.file} switches the hooks of this session off`,
      managed.silence.what === 'disableAllHooks'
        ? 'Ask who manages this machine, or say --agent none to run without a record of what the agent does.'
        : 'Attach nd7 there (sudo nd7 init --managed), or say --agent none to run without a record of what the agent does.',
      'silenced',
    );
  const userFiles = [
    join(settings, SETTINGS),
    ...['settings.json', 'settings.local.json'].map((name) => join(project, '.claude', name)),
  ];
  const off = userFiles.filter((file) => silencedBy(file, nd7Home)?.how === 'disable-all-hooks');
  const line = claudeLine(options);
  const given = givenSettings(line.settings, cwd);
  const shell = isBrokered === true ? findShell(environment) : undefined;
  const ours = managed.isAttached ? {} : claudeHooks(registered(userFiles, nd7Home));
  return {
    agent: 'claude-code',
    argv: [...argv.slice(0, found.at + 1), ...line.options, ...own.slice(options.length)],
    shell,
    files: { [SETTINGS]: JSON.stringify(merged(given, ours, shell === undefined ? {} : shellVariables(shell))) },
    notes: [
      ...[...off, ...(given['disableAllHooks'] === true ? ['--settings'] : [])].map(
        (file) => `"disableAllHooks" in ${file} does not hold in this session: hooks run, and are inside`,
      ),
      ...(managed.sandbox === undefined
        ? []
        : [`${managed.sandbox} insists on the client’s own sandbox, which cannot be made inside the boundary`]),
    ],
  };
}

type Settings = Record<string, unknown>;

/** Settings of the client, ours upon those that the person gave on the command line. */
function merged(given: Settings, ours: Record<string, unknown[]>, variables: Record<string, string>): Settings {
  const hooks: Record<string, unknown> = isObject(given['hooks']) ? { ...given['hooks'] } : {};
  for (const [event, groups] of Object.entries(ours)) {
    const theirs = hooks[event];
    hooks[event] = [...(Array.isArray(theirs) ? (theirs as unknown[]) : []), ...groups];
  }
  const sandbox = isObject(given['sandbox']) ? given['sandbox'] : {};
  // The boundary is around the whole client; a second one cannot be made inside.
  const env = { ...(isObject(given['env']) ? given['env'] : {}), ...variables };
  const withEnv = Object.keys(env).length > 0 ? { env } : {};
  return { ...given, ...withEnv, disableAllHooks: false, sandbox: { ...sandbox, enabled: false }, hooks };
}

/** What `--settings` says: a file, or the text itself. Throws `CliError` where it cannot be read: the client would not start either. */
function givenSettings(value: string | undefined, cwd: string): Settings {
  if (value === undefined) return {};
  try {
    const text = value.trimStart().startsWith('{') ? value : readFileSync(resolve(cwd, value), 'utf8');
    const settings: unknown = JSON.parse(text);
    if (isObject(settings)) return settings;
  } catch {
    // said below
  }
  throw new CliError(
    2,
    `--settings ${value.slice(0, 200)} is no file with settings and no settings`,
    'Give it as claude takes it.',
  );
}

function isObject(value: unknown): value is Settings {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The command that is registered already, word for word, so that the client takes both registrations for one; else that of `nd7 init`. */
function registered(files: readonly string[], nd7Home: string): HookCommand {
  for (const file of files) {
    const [known] = hooksIn(file).filter(({ args }) => args.includes(nd7Home));
    if (known !== undefined) return { command: known.command, args: known.args };
  }
  return plannedCommand(nd7Home, 'claude-code', 'user');
}

function hooksIn(file: string): ReturnType<typeof findClaudeHooks> {
  try {
    return findClaudeHooks(file);
  } catch {
    return []; // broken settings: the client does not read them either
  }
}

/** Of several `--settings`, and of several `--append-system-prompt`, the client takes the last: ours has to be theirs and more. */
function claudeLine(given: readonly string[]): { options: string[]; settings: string | undefined } {
  const options = [...given];
  const settings = lastOption(options, '--settings');
  if (settings !== undefined) options.splice(settings.at, settings.end - settings.at);
  const prompt = lastOption(options, '--append-system-prompt');
  if (prompt !== undefined) options.splice(prompt.at, prompt.end - prompt.at);
  const hint = prompt === undefined ? HINT : `${prompt.value}\n\n${HINT}`;
  return {
    options: [
      '--settings',
      `${DOOR}/${SETTINGS}`,
      '--append-system-prompt',
      hint,
      ...withoutOption(options, '--settings'),
    ],
    settings: settings?.value,
  };
}

/** What the agent is told of where it is. */
const HINT =
  'You run inside an nd7 boundary that the kernel holds: you can write this project, temporary files and package caches; secrets, ' +
  'credentials, other folders of the home, settings of agents, editors and git, and all hosts but the listed ones are closed to you and to every ' +
  'program you start. What it refuses (EACCES, EROFS, "nd7-reason" from the proxy) stays refused: do not look for a way round. ' +
  '`/run/nd7/nd7 why PATH` or `why HOST` names the rule; `/run/nd7/nd7 ask read|write|net|socket WHAT --reason TEXT` puts what you need to the user, ' +
  'who decides in a terminal of their own (--wait waits for that); ask for the one path or host, once.';

/** An argument that says so, where the door's folder is elsewhere; any other as it is. */
export function hintIn(word: string, door: string): string {
  return word.endsWith(HINT) ? word.slice(0, -HINT.length) + HINT.replaceAll(DOOR, door) : word;
}

/** The last occurrence of an option that takes a value, as `--name value` or `--name=value`. */
function lastOption(options: readonly string[], name: string): { at: number; end: number; value: string } | undefined {
  let found: { at: number; end: number; value: string } | undefined;
  for (let at = 0; at < options.length; at++) {
    const option = options[at] as string;
    if (option === name && options[at + 1] !== undefined) found = { at, end: at + 2, value: options[++at] as string };
    else if (option.startsWith(`${name}=`)) found = { at, end: at + 1, value: option.slice(name.length + 1) };
  }
  return found;
}

/** Those before the last one say nothing to the client. */
function withoutOption(options: readonly string[], name: string): string[] {
  const earlier = lastOption(options, name);
  return earlier === undefined
    ? [...options]
    : withoutOption(options.toSpliced(earlier.at, earlier.end - earlier.at), name);
}

function attachCodex({ argv, found, nd7Home, isBrokered }: AttachInput): Attachment {
  const shell = isBrokered === true ? codexShell(readPasswd()) : undefined;
  const own = codexArguments(plannedCommand(nd7Home, 'codex', 'user'));
  return {
    agent: 'codex',
    argv: [...argv.slice(0, found.at + 1), ...own, ...argv.slice(found.at + 1)],
    shell: shell?.path,
    ...(shell === undefined ? {} : { passwd: shell.passwd }),
    files: {},
    notes: [],
  };
}

function readPasswd(): string {
  try {
    return readFileSync(PASSWD, 'latin1');
  } catch {
    return '';
  }
}
