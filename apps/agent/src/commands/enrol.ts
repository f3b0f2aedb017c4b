import { hostname } from 'node:os';
import type { Command } from 'commander';
import type { Io } from '../cli/io.js';
import { safeLine } from '../show/safe.js';

interface Options {
  name: string;
  insecure?: boolean;
  replace?: boolean;
}

/** `nd7 enrol`: first trust of this machine by a team's vault, and of the vault by this machine. */
export function register(program: Command, io: Io): void {
  program
    .command('enrol')
    .description('enrol this machine at a vault: pins its key, and the recorder ships by itself from then on')
    .argument('<url>', 'address of the vault, https://vault.example')
    .argument('<token>', 'one-time token from the team’s admin (nd7-vault enrolment create); - reads it from stdin')
    .option('--name <name>', 'what people call this machine', hostname())
    .option('--insecure', 'allow http:// to another host')
    .option('--replace', 'put this vault in the place of the one enrolled at before')
    .action((url: string, token: string, options: Options) => run(io, url, token, options));
}

async function run(io: Io, url: string, token: string, options: Options): Promise<void> {
  const { enrol, pullTeamPolicy } = await import('@nd7/ship');
  const { openHome } = await import('@nd7/journal');
  const { systemClock, systemRandom } = await import('@nd7/signing');
  const { asCliError } = await import('../shipping/errors.js');
  try {
    openHome(io.home);
    const { vault, receipt } = await enrol({
      url,
      token: token === '-' ? await fromStdin() : token,
      name: options.name,
      home: io.home,
      clock: systemClock,
      random: systemRandom,
      insecure: options.insecure === true,
      replace: options.replace === true,
    });
    // Before anything is confined here; where it cannot be had, the recorder fetches it later.
    const { machineKey } = await import('@nd7/journal');
    const signer = machineKey(openHome(io.home));
    await pullTeamPolicy({ home: io.home, signer, clock: systemClock, random: systemRandom }).catch((error: unknown) =>
      io.err(
        `nd7: the team’s policy was not fetched: ${safeLine(error instanceof Error ? error.message : String(error))}`,
      ),
    );
    const { askJson } = await import('../recorder/client.js');
    await askJson(io.home, 'ship', {}, 1000); // a recorder that runs already learns of the vault
    if (io.isJson) {
      const { url: address, team, origin, vkey, machine } = vault;
      io.json({ url: address, team, origin, vkey, machine, receipt: receipt !== undefined });
      return;
    }
    io.out(`${io.paint('green', '✓')} enrolled at ${vault.url} for team ${vault.team}`);
    io.out(`  log       ${vault.origin}`);
    io.out(`  key       ${vault.vkey}`);
    io.out(`            pinned: receipts by any other key are refused`);
    io.out(`  machine   ${vault.machine}, called ${options.name}`);
    io.out(receipt === undefined ? '  receipt   not published yet' : '  receipt   of the enrolment, verified');
    io.out(
      io.paint(
        'dim',
        'What is recorded from now on is shipped by the recorder; `nd7 ship` ships what was recorded before.',
      ),
    );
  } catch (error) {
    throw asCliError(error);
  }
}

async function fromStdin(): Promise<string> {
  let text = '';
  for await (const chunk of process.stdin) text += String(chunk);
  return text.trim();
}
