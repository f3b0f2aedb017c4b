import { readFileSync } from 'node:fs';
import type { Command } from 'commander';
import { utf8 } from '@nd7/entry';
import { compile, PolicyError, readPolicy } from '@nd7/policy';
import { checkTeamPolicy, formatTeamPolicy } from '@nd7/receipt';
import { sha256Hex } from '@nd7/signing';
import { parseVkey } from '@nd7/tlog';
import { CommandError, type AdminIo } from '../cli/io.js';
import { requireTeam } from '../cli/team.js';
import { readOrigin, readVkeys } from '../sequence/tables.js';
import { EmbeddedSigner } from '../signer/embedded.js';
import { addTeamPolicy, newestTeamPolicy } from './store.js';

/** A machine on which the policy is compiled, to see that it can be meant: places of nobody. */
const NOWHERE = {
  home: '/home/dev',
  project: '/home/dev/project',
  tmp: '/tmp',
  nd7Home: '/home/dev/.nd7',
  variables: {},
};

/** Why a text is no team's policy, with its line; undefined where it is one. */
export function whyNotTeamPolicy(text: string, file: string): string | undefined {
  try {
    const team = readPolicy(text, file, 'team');
    compile({
      places: NOWHERE,
      user: null,
      project: null,
      team,
      session: { profile: null, packs: [], policy: null },
      grants: [],
      files: new Map(),
    });
    return undefined;
  } catch (error) {
    if (error instanceof PolicyError) return error.message;
    throw error;
  }
}

/**
 * Signs a policy with the team's key and puts it in force, as the version after the newest. The same text again changes nothing. The key is
 * read from the signer's folder: what signs for the running vault does not sign policies, whoever asks it.
 */
export async function setTeamPolicy(
  io: AdminIo,
  team: string,
  file: string,
): Promise<{ version: number; changed: boolean }> {
  await requireTeam(io, team);
  const bytes = readFileSync(file);
  const policy = bytes.toString('utf8');
  if (Buffer.compare(Buffer.from(policy), bytes) !== 0) throw new CommandError(2, `${file} is not UTF-8`);
  const why = whyNotTeamPolicy(policy, file);
  if (why !== undefined) throw new CommandError(2, why);
  const { origin, vkeys, newest } = await io.database().tenant(team, async (tx) => ({
    origin: await readOrigin(tx, team),
    vkeys: await readVkeys(tx, team),
    newest: await newestTeamPolicy(tx, team),
  }));
  if (newest?.policy === policy) return { version: newest.version, changed: false };
  const version = (newest?.version ?? 0) + 1;
  const key = parseVkey(vkeys.at(-1) ?? '');
  if (origin === undefined || key === undefined)
    throw new CommandError(1, `team ${team} has no log yet: \`nd7-vault team create ${team}\` completes it`);
  const policySha256 = sha256Hex(utf8(policy));
  const note = await EmbeddedSigner.signNote(
    io.config().signerState,
    origin,
    formatTeamPolicy({ origin, version, policySha256 }),
  );
  if (typeof note !== 'string') throw new CommandError(1, `${note.message}: run this where the signer's folder is`);
  // What machines will be given is checked as they check it, before it is anywhere.
  if ('fault' in checkTeamPolicy(note, policySha256, { origin, key }))
    throw new CommandError(1, `the signer's key of ${origin} is not the log's own: put that key file back`);
  const isAdded = await io.database().tenant(team, (tx) => addTeamPolicy(tx, team, { version, note, policy }));
  if (!isAdded)
    throw new CommandError(1, `somebody else has just set version ${version}: look at it, then set yours again`);
  return { version, changed: true };
}

export function registerPolicy(program: Command, run: (work: (io: AdminIo) => Promise<void>) => Promise<void>): void {
  const policy = program
    .command('policy')
    .description('what a team’s machines may do in confined sessions (docs/policy.md)');
  policy
    .command('set <team> <file>')
    .description(
      'check a policy, sign it with the team’s key and put it in force; machines fetch it and nobody at them loosens it',
    )
    .action((team: string, file: string) =>
      run(async (io) => {
        const { version, changed } = await setTeamPolicy(io, team, file);
        io.out(
          changed
            ? `version ${version} of the policy of team ${team} is in force`
            : `it is in force already, as version ${version}`,
        );
        io.json({ team, version, changed });
      }),
    );
  policy
    .command('show <team>')
    .description('print the policy in force')
    .action((team: string) =>
      run(async (io) => {
        await requireTeam(io, team);
        const newest = await io.database().tenant(team, (tx) => newestTeamPolicy(tx, team));
        if (newest === undefined)
          throw new CommandError(1, `team ${team} has no policy: \`nd7-vault policy set ${team} FILE\``);
        io.out(newest.policy.trimEnd());
        io.json({ team, ...newest });
      }),
    );
}
