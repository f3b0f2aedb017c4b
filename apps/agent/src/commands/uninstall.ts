import { existsSync, realpathSync } from 'node:fs';
import { dirname } from 'node:path';
import type { Command } from 'commander';
import type { SettingsChange } from '@nd7/hooks';
import { CliError, type Io } from '../cli/io.js';

interface UninstallOptions {
  managed?: boolean;
  settings?: string;
  dryRun?: boolean;
}

/** `nd7 uninstall`: gives every settings file back as it was; recordings stay. */
export function register(program: Command, io: Io): void {
  program
    .command('uninstall')
    .description('detach from every agent (settings get back their exact bytes; recordings stay)')
    .option('--managed', 'detach what `nd7 init --managed` attached for everybody on this machine (needs root)')
    .option('--settings <file>', 'detach from this settings file only')
    .option('-n, --dry-run', 'show what would change and write nothing')
    .action((options: UninstallOptions) => uninstall(io, options));
}

async function uninstall(io: Io, options: UninstallOptions): Promise<void> {
  const { attachedFiles, uninstallClaudeCode } = await import('@nd7/hooks');
  const { settingsPath } = await import('../recorder/settings-paths.js');
  if (options.managed === true && options.settings !== undefined)
    throw new CliError(2, '--settings names the file itself: leave --managed out');
  if (options.managed === true && process.geteuid?.() !== 0)
    throw new CliError(1, 'managed settings belong to root', 'run it as root: sudo nd7 uninstall --managed');
  const managed = settingsPath('managed', io.env, io.cwd);
  // Besides the files nd7 remembers: the places where it would have been attached, should its memory be gone.
  const guesses = (['user', 'project'] as const).map((scope) => settingsPath(scope, io.env, io.cwd));
  const one = options.managed === true ? managed : options.settings;
  const files = one !== undefined ? [one] : unique([...attachedFiles(io.home), ...guesses]);
  const dryRun = options.dryRun === true;
  const changes: SettingsChange[] = [];
  const failures: { settings: string; error: string }[] = [];
  for (const settingsFile of files) {
    try {
      const change = uninstallClaudeCode({ settingsPath: settingsFile, home: io.home, dryRun });
      if (change.changed) changes.push(change);
    } catch (error) {
      failures.push({ settings: settingsFile, error: error instanceof Error ? error.message : String(error) });
    }
  }
  if (!dryRun && changes.some(({ path }) => path === managed)) await removeWhatEverybodyRan(managed);
  const { removeFrontLink } = await import('../recorder/front.js');
  const link = one === undefined && failures.length === 0 ? removeFrontLink(io.home, io.env, dryRun) : undefined;
  let recorder: 'stopped' | 'not running' | 'kept' = 'kept';
  if (one === undefined && !dryRun && failures.length === 0) {
    const { askRecorder } = await import('../recorder/client.js');
    const answer = await askRecorder(io.home, 'stop', { meta: { reason: 'uninstalled' } });
    recorder = answer === undefined ? 'not running' : 'stopped';
    if (answer === undefined) await sayGoodbye(io.home);
  }
  if (failures.length > 0) io.setExit(1);
  if (io.isJson) {
    io.json({
      dry_run: dryRun,
      changed: changes.map(({ path, restored, after }) => ({
        settings: path,
        restored,
        removed_file: after === undefined,
      })),
      failed: failures,
      command: link ?? null,
      recorder,
    });
    return;
  }
  for (const { path, restored, after } of changes)
    io.out(
      `${dryRun ? 'Would detach' : 'Detached'} from ${path}: ${after === undefined ? 'the file is nd7’s own and goes' : restored === 'exact' ? 'the bytes from before nd7' : 'nd7’s entries removed, the rest as it stands'}.`,
    );
  if (link !== undefined) io.out(`${dryRun ? 'Would remove' : 'Removed'} ${link}.`);
  for (const { error } of failures) io.err(`nd7: ${error}`);
  if (changes.length === 0 && failures.length === 0 && link === undefined)
    io.out(`nd7 is ${one === undefined ? 'attached nowhere' : `not attached in ${one}`}; nothing to change.`);
  const { attachedForEverybody } = await import('../recorder/managed.js');
  const everybody = one === undefined ? attachedForEverybody(io.env, io.cwd) : undefined;
  if (everybody !== undefined)
    io.out(
      `An administrator has attached nd7 for everybody in ${everybody}: sudo nd7 uninstall --managed detaches it.`,
    );
  if (recorder === 'stopped') io.out('The recorder has been stopped.');
  io.out(`Recordings stay in ${options.managed === true ? 'each user’s ~/.nd7' : io.home}.`);
}

/** The shim and the folders that `nd7 init --managed` made, where nothing else is in them. */
async function removeWhatEverybodyRan(settings: string): Promise<void> {
  const { removeEmptyFolder, removeManagedShim } = await import('../recorder/shim.js');
  removeManagedShim();
  for (const folder of [dirname(settings), dirname(dirname(settings))]) removeEmptyFolder(folder);
}

/** Where no recorder runs that would do it: tells the vault of an enrolled machine that it will not be heard any more. */
async function sayGoodbye(root: string): Promise<void> {
  const { Home, machineKey } = await import('@nd7/journal');
  const home = new Home(root);
  if (!existsSync(home.vaultFile)) return;
  const { announceAway } = await import('../recorder/ship-wiring.js');
  const { systemClock, systemRandom } = await import('@nd7/signing');
  const parts = { home, signer: machineKey(home), clock: systemClock, random: systemRandom };
  // A vault that cannot be reached keeps nobody from detaching.
  await announceAway('uninstalled', parts).catch(() => false);
}

function unique(files: readonly string[]): string[] {
  const seen = new Set<string>();
  return files.filter((file) => {
    let real = file;
    try {
      real = realpathSync(file);
    } catch {
      // not there: nothing to remove either
    }
    return !seen.has(real) && seen.add(real);
  });
}
