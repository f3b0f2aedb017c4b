import { parseVkey } from '@nd7/tlog';
import type { VaultConfig } from '../config.js';
import { readOrigin, readVkeys, type TenantDatabase } from '../sequence/tables.js';
import { LogError } from '../sequence/log-error.js';
import { provisionFiles } from './embedded.js';
import { EmbeddedSigner } from './embedded.js';
import { SignerClient } from './socket-client.js';
import { SignerError, type CheckpointSigner } from './signer.js';

/**
 * Makes a team's log where it has none: signing key and empty signer state, then the rows `log` and `log_key`. Done again it changes nothing
 * and gives the same verifier key. A key that is not the log's own is refused: it would be another log under the same name.
 */
export async function createLog(
  signer: Pick<CheckpointSigner, 'provision'>,
  db: TenantDatabase,
  vaultName: string,
  team: string,
): Promise<string> {
  const origin = `${vaultName}/${team}`;
  const { origin: stored, known } = await db.tenant(team, async (tx) => ({
    origin: await readOrigin(tx, team),
    known: await readVkeys(tx, team),
  }));
  if (stored !== undefined && stored !== origin)
    throw new LogError(
      'unknown-log',
      `the log of team ${team} is ${stored}, not ${origin}: an origin is never renamed, set ND7_VAULT_NAME back`,
    );
  const state = await signer.provision(origin);
  if (!state.ok) throw new SignerError('keys', state.message);
  const [vkey] = state.vkeys;
  const key = vkey === undefined ? undefined : parseVkey(vkey);
  if (vkey === undefined || key === undefined) throw new SignerError('keys', `the signer has no key of ${origin}`);
  const newest = known.at(-1);
  if (newest !== undefined) {
    if (!state.vkeys.includes(newest))
      throw new SignerError(
        'keys',
        `the signer's key of ${origin} is not the log's own (${newest}): put that key file back`,
      );
    return newest;
  }
  await db.tenant(team, async (tx) => {
    await tx`insert into nd7.log (team, origin) values (${team}, ${origin}) on conflict (team) do nothing`;
    await tx`insert into nd7.log_key (team, position, vkey, public_key) values (${team}, 0, ${vkey}, ${Buffer.from(key.key)}) on conflict (team, position) do nothing`;
  });
  return vkey;
}

/** `createLog` for the admin commands: through the signer process where there is one, else in the folder of the embedded signer. */
export async function createTeamLog(
  config: Pick<VaultConfig, 'name' | 'signerState' | 'signerSocket'>,
  db: TenantDatabase,
  team: string,
): Promise<string> {
  if (config.signerSocket !== undefined) {
    const client = new SignerClient(config.signerSocket);
    try {
      return await createLog(client, db, config.name, team);
    } finally {
      await client.close();
    }
  }
  return createLog(folderSigner(config.signerState), db, config.name, team);
}

/**
 * Makes key files beside a vault that runs and holds the folder's lock: a new key and its empty state are made only where there is neither,
 * which needs no lock, and the running signer finds them at its first request for the log.
 */
function folderSigner(folder: string): Pick<CheckpointSigner, 'provision'> {
  return {
    provision: async (origin) => {
      await provisionFiles(folder, origin);
      return EmbeddedSigner.look(folder, origin);
    },
  };
}
