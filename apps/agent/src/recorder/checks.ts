import {
  accessSync,
  constants,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmdirSync,
  statfsSync,
  statSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { attachedFiles, CLAUDE_EVENTS, findClaudeHooks, isNd7Handler, settingsValue } from '@nd7/hooks';
import { Home, openHome } from '@nd7/journal';
import { boundary, killed } from '../confine/check.js';
import { selftested } from '../selftest/check.js';
import { askJson, socketOf } from './client.js';
import { readConfig } from './config.js';
import { deadDoors } from './doors.js';
import { heartbeatCheck } from './heartbeat-check.js';
import { probe } from './probe.js';
import { MANAGED_FOLDER, settingsPath } from './settings-paths.js';
import { shimState } from './shim.js';
import { teamPolicyCheck } from './team-policy-check.js';
import { counted, troublesLately } from './troubles.js';

/** One thing `nd7 doctor` looked at. `note`: works, but a person should know; `bad`: recording does not work as wished. */
export interface Check {
  name: string;
  state: 'ok' | 'note' | 'bad';
  text: string;
  /** What to do about it. */
  next?: string;
}

/** What the checks look at. */
export interface Surroundings {
  home: string;
  env: NodeJS.ProcessEnv;
  cwd: string;
  /** Claude Code's managed folder; another one in tests. */
  managedFolder?: string;
}

const MIN_NODE = [20, 19] as const;
const LOW_SPACE = 100 * 1000 * 1000;

/** All checks, in the order in which a failure explains the ones after it. Never throws. */
export async function allChecks(at: Surroundings): Promise<Check[]> {
  const checks: Check[] = [];
  for (const run of [
    node,
    home,
    space,
    config,
    shim,
    attached,
    silenced,
    managedOnly,
    rewriters,
    socket,
    firing,
    leftovers,
    troubles,
    vault,
    heartbeat,
    teamPolicy,
    postgres,
    boundary,
    killed,
    selftested,
  ]) {
    try {
      checks.push(...[await run(at)].flat());
    } catch (error) {
      checks.push({ name: run.name, state: 'bad', text: error instanceof Error ? error.message : String(error) });
    }
  }
  return checks;
}

function node(): Check {
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
  const fine = major > MIN_NODE[0] || (major === MIN_NODE[0] && minor >= MIN_NODE[1]);
  return fine
    ? { name: 'node', state: 'ok', text: `Node ${process.versions.node}` }
    : {
        name: 'node',
        state: 'bad',
        text: `Node ${process.versions.node} is too old`,
        next: `install Node ${MIN_NODE.join('.')} or newer`,
      };
}

function home(at: Surroundings): Check {
  if (!existsSync(at.home)) {
    const above = nearestFolder(at.home);
    try {
      rmdirSync(mkdtempSync(join(above, '.nd7-')));
    } catch (error) {
      const why = (error as NodeJS.ErrnoException).code ?? String(error);
      const text = `${at.home} is not there and cannot be made: ${above} takes no folder (${why})`;
      return { name: 'home', state: 'bad', text, next: 'set ND7_HOME to a folder of your own' };
    }
    return { name: 'home', state: 'note', text: `${at.home} is not there yet`, next: 'nd7 init makes it' };
  }
  openHome(at.home); // says itself what to do
  return { name: 'home', state: 'ok', text: `${at.home} is yours alone and can be written` };
}

/** The path itself, or the nearest above it that is there. */
function nearestFolder(path: string): string {
  return existsSync(path) ? path : nearestFolder(dirname(path));
}

function space(at: Surroundings): Check {
  const { bavail, bsize } = statfsSync(nearestFolder(at.home));
  const free = bavail * bsize;
  const text = `${Math.floor(free / 1e6).toLocaleString('en')} MB free for ${at.home}`;
  return free >= LOW_SPACE
    ? { name: 'space', state: 'ok', text }
    : { name: 'space', state: 'bad', text, next: 'make room: entries that cannot be written become gaps' };
}

function config(at: Surroundings): Check {
  const { recording, problem } = readConfig(at.home);
  if (problem !== undefined)
    return {
      name: 'config',
      state: 'bad',
      text: `${problem}; "recording": "required" holds until it is mended`,
      next: `mend ${join(at.home, 'config.json')}, e.g. {"recording": "best-effort"}`,
    };
  const text =
    recording === 'required'
      ? 'recording is required: a tool call that cannot be recorded is denied'
      : 'recording is best-effort: a tool call goes on when it cannot be recorded, and a gap tells of it';
  return { name: 'config', state: 'ok', text };
}

function shim(at: Surroundings): Check {
  const state = shimState(at.home);
  if (state.kind === 'fine') return { name: 'shim', state: 'ok', text: `${state.path} answers in about a millisecond` };
  return { name: 'shim', state: state.kind === 'absent' ? 'note' : 'bad', text: state.problem, next: state.next };
}

function attached(at: Surroundings): Check[] {
  const managed = settingsPath('managed', at.env, at.cwd);
  const files = [
    ...new Set([
      ...attachedFiles(at.home),
      ...(['user', 'project'] as const).map((scope) => settingsPath(scope, at.env, at.cwd)),
      managed,
    ]),
  ];
  const wanted = Object.entries(CLAUDE_EVENTS)
    .filter(([, event]) => event.register)
    .map(([name]) => name);
  const checks = files.flatMap((file): Check[] => {
    let hooks: ReturnType<typeof findClaudeHooks>;
    try {
      hooks = findClaudeHooks(file);
    } catch (error) {
      return [{ name: 'attached', state: 'bad', text: (error as Error).message }];
    }
    if (hooks.length === 0) return [];
    const missing = wanted.filter((event) => !hooks.some((hook) => hook.event === event));
    const broken = hooks.find((hook) => !executable(hook.command));
    if (broken !== undefined)
      return [
        {
          name: 'attached',
          state: 'bad',
          text: `${file} names ${broken.command}, which cannot be run: every hook fails and no call is recorded`,
          next: 'run `nd7 init` again',
        },
      ];
    if (missing.length > 0)
      return [
        { name: 'attached', state: 'note', text: `${file} lacks ${missing.join(', ')}`, next: 'run `nd7 init` again' },
      ];
    return [{ name: 'attached', state: 'ok', text: `${file}, ${hooks.length} events` }];
  });
  return checks.length > 0
    ? checks
    : [{ name: 'attached', state: 'bad', text: 'nd7 is attached to no agent here', next: 'run `nd7 init`' }];
}

/** `disableAllHooks` in any file that the client would read here. */
function silenced(at: Surroundings): Check[] {
  const files = [
    settingsPath('user', at.env, at.cwd),
    ...['settings.json', 'settings.local.json'].map((name) => join(at.cwd, '.claude', name)),
    ...managedFiles(at),
  ];
  const found = files.filter(
    (file) => (valueOf(file) as { disableAllHooks?: unknown } | undefined)?.disableAllHooks === true,
  );
  if (found.length === 0) return [{ name: 'disableAllHooks', state: 'ok', text: 'set nowhere here' }];
  return found.map((file) => ({
    name: 'disableAllHooks',
    state: 'bad',
    text: `${file} switches all hooks off: nothing is recorded`,
    next: 'remove "disableAllHooks" there, or attach with `nd7 init --managed` where no project setting reaches',
  }));
}

function managedOnly(at: Surroundings): Check {
  const file = managedFiles(at).find(
    (one) => (valueOf(one) as { allowManagedHooksOnly?: unknown } | undefined)?.allowManagedHooksOnly === true,
  );
  if (file === undefined) return { name: 'allowManagedHooksOnly', state: 'ok', text: 'not set on this machine' };
  const managed = managedFiles(at).some((one) => safely(() => findClaudeHooks(one).length, 0) > 0);
  return managed
    ? { name: 'allowManagedHooksOnly', state: 'ok', text: `${file} lets only managed hooks run, and nd7 is among them` }
    : {
        name: 'allowManagedHooksOnly',
        state: 'bad',
        text: `${file} lets only managed hooks run: nd7's are silently off`,
        next: 'attach with `nd7 init --managed` as root',
      };
}

/** Other hooks before a tool call may rewrite it: what nd7 records is what was said before that. */
function rewriters(at: Surroundings): Check {
  const files = [
    settingsPath('user', at.env, at.cwd),
    ...['settings.json', 'settings.local.json'].map((name) => join(at.cwd, '.claude', name)),
    ...managedFiles(at),
  ];
  const foreign = files.flatMap((file) => {
    const groups = (valueOf(file) as { hooks?: { PreToolUse?: unknown } } | undefined)?.hooks?.PreToolUse;
    if (!Array.isArray(groups)) return [];
    return groups.flatMap((group: unknown) =>
      ((group as { hooks?: unknown[] } | null)?.hooks ?? [])
        .filter((handler) => !isNd7Handler(handler))
        .map(
          (handler) =>
            `${String((handler as { command?: unknown; url?: unknown } | null)?.command ?? (handler as { url?: unknown } | null)?.url ?? 'a hook')} (${file})`,
        ),
    );
  });
  if (foreign.length === 0) return { name: 'other hooks', state: 'ok', text: 'no other hook stands before tool calls' };
  return {
    name: 'other hooks',
    state: 'note',
    text: `other hooks stand before tool calls and may change them: ${foreign.join(', ')}`,
    next: 'compare tool.before with tool.after: the input there is the one that was used',
  };
}

async function socket(at: Surroundings): Promise<Check> {
  const { folder, name } = socketOf(at.home);
  const recorder = await askJson(at.home, 'status', {}, 5_000);
  if (recorder !== undefined) {
    const mode = statSync(join(folder, name)).mode & 0o777;
    return mode === 0o600
      ? {
          name: 'recorder',
          state: 'ok',
          text: `runs as process ${String(recorder['pid'])}, nd7 ${String(recorder['version'])}`,
        }
      : {
          name: 'recorder',
          state: 'bad',
          text: `${join(folder, name)} has mode ${mode.toString(8)}`,
          next: 'run `nd7 recorder --stop`; the next hook starts a new one',
        };
  }
  return existsSync(join(folder, name))
    ? {
        name: 'recorder',
        state: 'note',
        text: 'its socket is there but nobody answers',
        next: 'the next hook starts a new one; see recorder.log beside it',
      }
    : { name: 'recorder', state: 'ok', text: 'not running; the next hook starts it' };
}

/** The proof: what is registered is run as the client would, and the entry must stand in the log. */
async function firing(at: Surroundings): Promise<Check[]> {
  const files = [
    ...new Set([
      ...attachedFiles(at.home),
      ...(['user', 'project', 'managed'] as const).map((scope) => settingsPath(scope, at.env, at.cwd)),
    ]),
  ];
  const commands = new Map<string, { command: string; args: string[] }>();
  for (const file of files)
    for (const hook of safely(() => findClaudeHooks(file), []))
      commands.set(JSON.stringify([hook.command, hook.args]), hook);
  const checks: Check[] = [];
  for (const hook of commands.values()) {
    const outcome = await probe(hook, at);
    checks.push(
      outcome.ok
        ? {
            name: 'firing',
            state: 'ok',
            text: `${hook.command} recorded a probe in ${outcome.ms} ms (session ${outcome.session}, entry ${outcome.seq})`,
          }
        : {
            name: 'firing',
            state: 'bad',
            text: `${hook.command} ${hook.args.join(' ')}: ${outcome.problem}`,
            next: `look into ${join(at.home, 'run', 'recorder.log')}`,
          },
    );
  }
  return checks;
}

/** Gaps and alarms of the newest sessions. */
function leftovers(at: Surroundings): Check {
  const dead = deadDoors(at.home);
  const name = 'killed sessions';
  if (dead.length === 0) return { name, state: 'ok', text: 'none has left anything behind' };
  const [first = '', more] = [dead[0], dead.length - 1];
  return {
    name,
    state: 'note',
    text: `${first}${more > 0 ? ` and ${more} more` : ''} ended without a word: the record lacks an end, and folders lie in ${join(at.home, 'run')}`,
    next: 'the next nd7 run, host or recorder writes the end and takes them away',
  };
}

function troubles(at: Surroundings): Check {
  const found = troublesLately(new Home(at.home));
  const { last } = found;
  if (last === undefined) return { name: 'gaps and alarms', state: 'ok', text: 'none in the newest entries' };
  return {
    name: 'gaps and alarms',
    state: 'note',
    text: `${counted(found)}; the last: ${last.kind} in ${last.session}, entry ${last.entry}: ${last.text}`,
    next: `nd7 log ${last.session} --kind ${last.kind}`,
  };
}

function vault(at: Surroundings): Check {
  return existsSync(join(at.home, 'vault.json'))
    ? { name: 'vault', state: 'ok', text: 'this machine is enrolled; `nd7 status` says what is shipped' }
    : {
        name: 'vault',
        state: 'note',
        text: 'this machine is not enrolled: its logs rest on this disk alone',
        next: 'nd7 enrol URL TOKEN',
      };
}

async function heartbeat(at: Surroundings): Promise<Check[]> {
  if (!existsSync(join(at.home, 'vault.json'))) return [];
  return [heartbeatCheck(at.home, await askJson(at.home, 'status', {}, 5_000))];
}

function teamPolicy(at: Surroundings): Promise<Check[]> {
  return teamPolicyCheck(at.home);
}

function postgres(): Check {
  return { name: 'PostgreSQL', state: 'ok', text: 'not needed on a machine that records; only the vault has one' };
}

function managedFiles(at: Surroundings): string[] {
  const folder = at.managedFolder ?? MANAGED_FOLDER;
  const dropIns = safely(() => readdirSync(folder), []).filter((name) => name.endsWith('.json'));
  return [join(dirname(folder), 'managed-settings.json'), ...dropIns.sort().map((name) => join(folder, name))];
}

function valueOf(file: string): unknown {
  return safely(() => settingsValue(readFileSync(file, 'utf8')), undefined);
}

function executable(path: string): boolean {
  return safely(() => {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  }, false);
}

function safely<T>(work: () => T, otherwise: T): T {
  try {
    return work();
  } catch {
    return otherwise;
  }
}
