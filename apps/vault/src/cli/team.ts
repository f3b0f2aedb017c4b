import type { Command } from 'commander';
import { readFileSync } from 'node:fs';
import { systemRandom } from '@nd7/signing';
import { createSealingKey, sealingKeys } from '../bodies/key-file.js';
import { whyNotPolicy } from '../log/witness-policy.js';
import { createTeamLog } from '../signer/team-key.js';
import { AdminIo, CommandError } from './io.js';

/** Throws unless the team is there. */
export async function requireTeam(io: AdminIo, team: string): Promise<void> {
  const rows = await io.database().tenant(team, (tx) => tx`select 1 from nd7.team where team = ${team}`);
  if (rows.length === 0)
    throw new CommandError(1, `there is no team ${JSON.stringify(team)}: make it with \`nd7-vault team create\``);
}

/** Makes a team: its row, its sealing key, its log and signing key. Done again, it completes what is missing. */
export async function createTeam(
  io: AdminIo,
  team: string,
): Promise<{ created: boolean; origin: string; vkey: string }> {
  const { name, keys } = io.config();
  if (!/^[a-z0-9-]{1,63}$/.test(team))
    throw new CommandError(
      2,
      `a team is named by 1 to 63 of a-z, 0-9 and dash, and never renamed; ${JSON.stringify(team)} is not`,
    );
  const added = await io
    .database()
    .tenant(team, (tx) => tx`insert into nd7.team (team) values (${team}) on conflict do nothing returning 1`);
  if (sealingKeys(keys, team).length === 0) createSealingKey(keys, team, systemRandom);
  const vkey = await createTeamLog(io.config(), io.database(), team);
  return { created: added.length === 1, origin: `${name}/${team}`, vkey };
}

export function registerTeam(program: Command, run: (work: (io: AdminIo) => Promise<void>) => Promise<void>): void {
  const team = program.command('team').description('teams: each has a log and a signing key of its own');
  team
    .command('create <name>')
    .description('make a team, its log and its keys; done again it completes what is missing')
    .action((name: string) =>
      run(async (io) => {
        const made = await createTeam(io, name);
        io.out(
          made.created
            ? `team ${name} made; its log is ${made.origin}`
            : `team ${name} exists; its log is ${made.origin}`,
        );
        io.out(`machines pin this key: ${made.vkey}`);
        io.json({ team: name, ...made });
      }),
    );
  team
    .command('new-sealing-key')
    .description(
      'seal the bodies of sessions to come under a new key of the team; the older keys stay, for what they sealed',
    )
    .requiredOption('--team <name>', 'which team')
    .action((options: { team: string }) =>
      run(async (io) => {
        await requireTeam(io, options.team);
        const key = createSealingKey(io.config().keys, options.team, systemRandom);
        io.out(`sealing key ${key} of team ${options.team} made: back it up apart from the database`);
        io.json({ team: options.team, sealing_key: key });
      }),
    );
  team
    .command('list')
    .description('the teams of this vault')
    .action(() =>
      run(async (io) => {
        const rows = await io.database().sql<{ team: string }[]>`select t as team from nd7.teams() t`;
        for (const row of rows) io.out(row.team);
        io.json({ teams: rows.map((row) => row.team) });
      }),
    );
  team
    .command('set <setting> <value>')
    .description(
      '`policy FILE`: the witness policy that machines are given; `log public|team`: who may read tiles and checkpoints',
    )
    .requiredOption('--team <name>', 'which team')
    .action((setting: string, value: string, options: { team: string }) =>
      run(async (io) => {
        await requireTeam(io, options.team);
        const text = settingText(setting, value);
        await io
          .database()
          .tenant(
            options.team,
            (tx) => tx`insert into nd7.team_setting (team, name, value) values (${options.team}, ${setting}, ${text})`,
          );
        io.out(`${setting} of team ${options.team} is set`);
        io.json({ team: options.team, setting });
      }),
    );
}

function settingText(setting: string, value: string): string {
  if (setting === 'log') {
    if (value !== 'public' && value !== 'team') throw new CommandError(2, 'log can be public or team');
    return value;
  }
  if (setting !== 'policy') throw new CommandError(2, `there is no setting ${JSON.stringify(setting)}: policy or log`);
  const text = readFileSync(value, 'utf8');
  const why = whyNotPolicy(text);
  if (why !== undefined) throw new CommandError(2, `${value}: ${why}`);
  return text;
}
