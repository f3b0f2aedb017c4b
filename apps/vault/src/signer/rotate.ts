import { toBase64 } from '@nd7/entry';
import { formatStatement, rotateMessage } from '@nd7/receipt';
import { emptyRoot, parseVkey } from '@nd7/tlog';
import { readVkeys, type TenantDatabase } from '../sequence/tables.js';
import type { EmbeddedSigner } from './embedded.js';
import { SignerError } from './signer.js';

interface Keys {
  db: TenantDatabase;
  signer: EmbeddedSigner;
  vaultName: string;
  team: string;
}

/**
 * The log gets a second key: the signer makes it, the log takes it on, and a `rotate` leaf signed by both says so, the last two in one
 * transaction. From then on both sign. A crash in between is finished by doing it again: no third key is made, no second leaf.
 */
export async function rotateKey({
  db,
  signer,
  vaultName,
  team,
  received,
}: Keys & { received: string }): Promise<{ old: string; new: string }> {
  const origin = `${vaultName}/${team}`;
  const rotation = await signer.rotate(origin, (old, next) => rotateMessage(origin, old, next));
  const key = parseVkey(rotation.new);
  if (key === undefined) throw new SignerError('keys', `the new key of ${origin} is no verifier key`);
  const [byOld, byNew] = rotation.signatures;
  const statement = formatStatement({
    type: 'rotate',
    origin,
    old: rotation.old,
    new: rotation.new,
    signatures: [toBase64(byOld), toBase64(byNew)],
    received,
  });
  await db.tenant(team, async (tx) => {
    const known = await readVkeys(tx, team);
    if (known.includes(rotation.new)) return;
    if (known.at(-1) !== rotation.old)
      throw new SignerError(
        'keys',
        `the signer's keys of ${origin} are not the log's (${known.join(', ')}): put the log's key files back`,
      );
    await tx`insert into nd7.log_key (team, position, vkey, public_key) values (${team}, ${known.length}, ${rotation.new}, ${Buffer.from(key.key)})`;
    await tx`select nd7.log_enqueue(${team}, ${statement}, 0, ${Buffer.from(emptyRoot)})`;
  });
  return { old: rotation.old, new: rotation.new };
}

/** Destroys the keys before the newest, if the newest is on record. Returns the verifier keys that sign no more. */
export async function retireKeys({ db, signer, vaultName, team }: Keys): Promise<string[]> {
  const origin = `${vaultName}/${team}`;
  const state = await signer.state(origin);
  if (!state.ok) throw new SignerError('keys', state.message);
  const newest = await db.tenant(team, async (tx) => (await readVkeys(tx, team)).at(-1));
  if (newest !== state.vkeys.at(-1))
    throw new SignerError(
      'keys',
      `the log of ${team} does not know the signer's newest key: finish \`nd7-vault key rotate\` first`,
    );
  return signer.retire(origin);
}
