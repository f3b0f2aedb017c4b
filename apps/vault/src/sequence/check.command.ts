// The log's half of `nd7-vault check`.
import { AdminIo, CommandError } from '../cli/io.js';
import { EmbeddedSigner } from '../signer/embedded.js';
import type { CheckpointSigner } from '../signer/signer.js';
import { SignerClient } from '../signer/socket-client.js';
import { checkLog, type LogCheck } from './check-log.js';

/** Makes every team's log again and compares; throws CommandError (exit 1) after the last when one of them disagrees. */
export async function checkLogs(io: AdminIo, only: { team?: string; receipts?: number } = {}): Promise<LogCheck[]> {
  const { signerSocket, signerState } = io.config();
  const client = signerSocket === undefined ? undefined : new SignerClient(signerSocket);
  // Beside a running vault: its embedded signer holds the lock, and the files say what it signed last.
  const signer: Pick<CheckpointSigner, 'state'> = client ?? {
    state: (origin) => EmbeddedSigner.look(signerState, origin),
  };
  try {
    const teams = await io.database().sql<{ team: string }[]>`select t as team from nd7.teams() t`;
    const wanted = teams.filter(({ team }) => only.team === undefined || only.team === team);
    if (only.team !== undefined && wanted.length === 0)
      throw new CommandError(1, `there is no team ${JSON.stringify(only.team)}`);
    const checks: LogCheck[] = [];
    for (const { team } of wanted) {
      const check = await checkLog(io.database(), team, {
        signer,
        ...(only.receipts === undefined ? {} : { receipts: only.receipts }),
      });
      checks.push(check);
      io.out(lineOf(check));
    }
    return checks;
  } finally {
    await client?.close();
  }
}

function lineOf({ team, origin, size, checkpoints, receipts, waiting, fault }: LogCheck): string {
  const log = `log ${origin ?? team}`;
  if (fault !== undefined) return `${log}: ${fault.at}: ${fault.what}`;
  return `${log}: ${String(size)} leaves, ${String(checkpoints)} checkpoints, ${String(receipts)} receipts made again and checked${waiting === 0 ? '' : `; ${String(waiting)} statements wait`}`;
}
