// The operator's side of the signer: run it, decide for it, change its keys.
import type { Command } from 'commander';
import { formatTime } from '@nd7/entry';
import { AdminIo, CommandError } from '../cli/io.js';
import { adopt } from './adopt.js';
import { EmbeddedSigner } from './embedded.js';
import { retireKeys, rotateKey } from './rotate.js';
import { describeHead, SignerError } from './signer.js';
import { SignerServer } from './socket-server.js';
import { createTeamLog } from './team-key.js';

type Run = (work: (io: AdminIo) => Promise<void>) => Promise<void>;

export function registerSignerCommands(program: Command, run: Run): void {
  const signer = program
    .command('signer')
    .description(
      'run the signer for the replicas of this machine, on the socket ND7_VAULT_SIGNER_SOCKET, until SIGTERM',
    );
  signer.action(() => run(serveSigner));
  signer
    .command('adopt')
    .description(
      'decide that the head in the database is what was signed last: after the signer lost its state, or after a backup was restored',
    )
    .requiredOption('--team <name>', 'whose log')
    .requiredOption('--by <id>', 'who decides, as u_<32 hex>: it stands in the log for ever')
    .option('--yes', 'decide; without it only what would be decided is shown')
    .action((options: { team: string; by: string; yes?: true }) =>
      run(async (io) => {
        if (!/^u_[0-9a-f]{32}$/.test(options.by))
          throw new CommandError(
            2,
            `--by is a person's id, u_ and 32 hex digits; ${JSON.stringify(options.by)} is not`,
          );
        await withFolder(io, async (embedded) => {
          const { name } = io.config();
          const done = await adopt({
            db: io.database(),
            signer: embedded,
            vaultName: name,
            team: options.team,
            by: options.by,
            received: formatTime(Date.now()),
            decide: options.yes === true,
          });
          const was =
            done.old === undefined
              ? 'the signer has lost what it signed last'
              : `the signer has signed ${describeHead(done.old)}`;
          io.out(`${was}; the database holds ${describeHead(done.new)}`);
          io.out(
            done.isNeeded
              ? done.decided
                ? 'adopted: the log goes on from the database, and says so in a leaf'
                : consequence(done)
              : 'nothing to decide: the database holds what was signed',
          );
          io.json({
            team: options.team,
            needed: done.isNeeded,
            adopted: done.decided,
            old: done.old === undefined ? null : headJson(done.old),
            new: headJson(done.new),
          });
        });
      }),
    );
  const key = program.command('key').description('signing keys of the logs');
  key
    .command('generate')
    .description('make the signing key of a team that has none, and its log')
    .requiredOption('--team <name>', 'which team')
    .action(({ team }: { team: string }) =>
      run(async (io) => {
        const vkey = await createTeamLog(io.config(), io.database(), team);
        io.out(vkey);
        io.json({ team, vkey });
      }),
    );
  key
    .command('rotate')
    .description(
      'make a new signing key; both sign until `key retire`, and a leaf signed by both says so (stop the signer first)',
    )
    .requiredOption('--team <name>', 'which team')
    .action(({ team }: { team: string }) =>
      run(async (io) => {
        await withFolder(io, async (embedded) => {
          const rotated = await rotateKey({
            db: io.database(),
            signer: embedded,
            vaultName: io.config().name,
            team,
            received: formatTime(Date.now()),
          });
          io.out(`old: ${rotated.old}\nnew: ${rotated.new}`);
          io.out('both sign from now on; give readers the new key, then run `nd7-vault key retire`');
          io.json({ team, ...rotated });
        });
      }),
    );
  key
    .command('retire')
    .description(
      'destroy the keys before the newest; receipts they signed stay good for whoever trusts them (stop the signer first)',
    )
    .requiredOption('--team <name>', 'which team')
    .action(({ team }: { team: string }) =>
      run(async (io) => {
        await withFolder(io, async (embedded) => {
          const retired = await retireKeys({ db: io.database(), signer: embedded, vaultName: io.config().name, team });
          io.out(
            retired.length === 0 ? 'nothing to retire' : retired.map((vkey) => `signs no more: ${vkey}`).join('\n'),
          );
          io.json({ team, retired });
        });
      }),
    );
}

/** Ready when the socket is there; ends with SIGTERM or SIGINT. */
async function serveSigner(io: AdminIo): Promise<void> {
  const { signerState, signerSocket } = io.config();
  if (signerSocket === undefined)
    throw new CommandError(2, 'ND7_VAULT_SIGNER_SOCKET is not set: without it the signer runs inside the vault');
  const signer = EmbeddedSigner.open(signerState);
  try {
    const server = await SignerServer.listen(signer, signerSocket);
    io.out(`signer listens on ${signerSocket}`);
    io.json({ socket: signerSocket });
    await new Promise<void>((done) => {
      for (const signal of ['SIGTERM', 'SIGINT'] as const)
        process.once(signal, () => {
          done();
        });
    });
    await server.close();
  } finally {
    await signer.close();
  }
}

/** The signer's folder to oneself: no running vault or signer may hold it. */
async function withFolder(io: AdminIo, work: (signer: EmbeddedSigner) => Promise<void>): Promise<void> {
  let signer: EmbeddedSigner;
  try {
    signer = EmbeddedSigner.open(io.config().signerState);
  } catch (error) {
    if (error instanceof SignerError) throw new CommandError(1, error.message);
    throw error;
  }
  try {
    await work(signer);
  } finally {
    await signer.close();
  }
}

function consequence({ old, new: next }: { old?: { size: number } | undefined; new: { size: number } }): string {
  const beyond =
    old === undefined
      ? 'whatever was signed beyond that'
      : `receipts for leaves ${String(next.size)} to ${String(old.size - 1)}`;
  return `Adopting makes the log go on from the database: ${beyond} will speak of a history that this vault no longer keeps, and will convict it before anybody who holds them. Look for the lost data first. To decide, say --yes.`;
}

function headJson(head: { size: number; root: Uint8Array }): { size: number; root: string } {
  return { size: head.size, root: Buffer.from(head.root).toString('base64') };
}
