// Tokens for people and machines, and taking them back.
import { InvalidArgumentError, Option, type Command } from 'commander';
import { formatTime, isHex } from '@nd7/entry';
import { formatStatement } from '@nd7/receipt';
import { sha256Hex, systemClock, systemRandom } from '@nd7/signing';
import { newId, newReaderToken, newSecret, tokenHash } from '../access/tokens.js';
import { readVkeys } from '../sequence/tables.js';
import { AdminIo, CommandError } from './io.js';
import { requireTeam } from './team.js';

type Run = (work: (io: AdminIo) => Promise<void>) => Promise<void>;

/** Who acts when nobody is named: somebody at the vault's own command line. */
const OPERATOR = `u_${'0'.repeat(32)}`;

const UNITS = { m: 60_000, h: 3_600_000, d: 86_400_000 } as const;

/** `30m`, `24h`, `90d` in milliseconds. */
export function duration(text: string): number {
  const [, count, unit] = /^([1-9][0-9]{0,5})([mhd])$/.exec(text) ?? [];
  if (count === undefined) throw new InvalidArgumentError('write it as 30m, 24h or 90d');
  return Number(count) * UNITS[unit as keyof typeof UNITS];
}

/** Makes a one-time enrolment token of a team. */
export async function createEnrolment(
  io: AdminIo,
  team: string,
  forMs: number,
): Promise<{ token: string; expires: string }> {
  await requireTeam(io, team);
  const vkey = (await io.database().tenant(team, (tx) => readVkeys(tx, team))).at(-1);
  if (vkey === undefined)
    throw new CommandError(1, `team ${team} has no log yet: run \`nd7-vault team create ${team}\` again`);
  const [secret, vkeyHash] = [newSecret(systemRandom), sha256Hex(Buffer.from(vkey, 'utf8'))];
  const expires = new Date(systemClock.now() + forMs);
  await io.database().tenant(
    team,
    (tx) => tx`
    insert into nd7.enrolment (team, secret_hash, vkey_hash, expires) values (${team}, ${tokenHash(secret)}, ${vkeyHash}, ${expires})`,
  );
  return { token: `nd7e1_${secret}_${vkeyHash}`, expires: expires.toISOString() };
}

/** Makes a reader of a team and a token for it. */
export async function createReader(
  io: AdminIo,
  team: string,
  options: { name?: string; forMs?: number } = {},
): Promise<{ reader: string; token: string }> {
  await requireTeam(io, team);
  const [reader, token] = [newId('u', systemRandom), newReaderToken(systemRandom)];
  const expires = options.forMs === undefined ? null : new Date(systemClock.now() + options.forMs);
  await io.database().tenant(team, async (tx) => {
    await tx`insert into nd7.reader (team, reader) values (${team}, ${reader})`;
    if (options.name !== undefined)
      await tx`insert into nd7.reader_name (team, reader, name) values (${team}, ${reader}, ${options.name})`;
    await tx`insert into nd7.reader_token (team, token_hash, reader, expires) values (${team}, ${tokenHash(token)}, ${reader}, ${expires})`;
  });
  return { reader, token };
}

/** Revokes a machine from a time on: a statement in the log, and no segment after the commit, on any replica. */
export async function revokeMachine(
  io: AdminIo,
  team: string,
  machine: string,
  options: { since?: Date; by?: string } = {},
): Promise<{ since: string }> {
  await requireTeam(io, team);
  if (!isHex(machine, 32))
    throw new CommandError(2, 'a machine is named by its public key, 64 hex digits (nd7-vault machine list)');
  const now = systemClock.now();
  const since = options.since ?? new Date(now);
  const by = options.by ?? OPERATOR;
  if (!/^u_[0-9a-f]{32}$/.test(by)) throw new CommandError(2, '--by takes an opaque id, u_ and 32 hex digits');
  const origin = `${io.config().name}/${team}`;
  const statement = formatStatement({
    type: 'revoke',
    origin,
    machine,
    since: formatTime(since.getTime()),
    by,
    received: formatTime(now),
  });
  await io.database().tenant(team, async (tx) => {
    const known = await tx`select 1 from nd7.machine where machine = ${machine}`;
    if (known.length === 0) throw new CommandError(1, `team ${team} has no machine ${machine}`);
    await tx`select nd7.hold_machine(${machine})`;
    const stated = await tx`select 1 from nd7.machine_revocation where machine = ${machine} and since <= ${since}`;
    if (stated.length > 0) return; // it says as much already
    const [leaf] = await tx<{ id: string }[]>`select nd7.log_enqueue(${team}, ${statement}, 0, null)::text as id`;
    await tx`
      insert into nd7.machine_revocation (team, machine, since, revoked_by, received, leaf_id)
      values (${team}, ${machine}, ${since}, ${by}, ${new Date(now)}, ${String(leaf?.id)})`;
  });
  return { since: since.toISOString() };
}

export function registerPeople(program: Command, run: Run): void {
  const enrolment = program.command('enrolment').description('one-time tokens with which machines become known');
  enrolment
    .command('create')
    .description('make a token for `nd7 enrol`; it is shown once')
    .requiredOption('--team <name>', 'for which team')
    .addOption(
      new Option('--expires <time>', 'until when it can be used: 30m, 24h, 7d')
        .argParser(duration)
        .default(24 * UNITS.h, '24h'),
    )
    .action((options: { team: string; expires: number }) =>
      run(async (io) => {
        const made = await createEnrolment(io, options.team, options.expires);
        io.out(made.token);
        io.json({ team: options.team, ...made });
      }),
    );
  const reader = program.command('reader').description('people and programs that read a team’s evidence');
  reader
    .command('create')
    .description('make a reader and its token; it is shown once')
    .requiredOption('--team <name>', 'of which team')
    .option('--name <name>', 'kept where it can be erased, never in the log')
    .option('--expires <time>', 'until when it is good: 24h, 90d (default: for ever)', duration)
    .action((options: { team: string; name?: string; expires?: number }) =>
      run(async (io) => {
        const { team, name, expires } = options;
        const made = await createReader(io, team, {
          ...(name === undefined ? {} : { name }),
          ...(expires === undefined ? {} : { forMs: expires }),
        });
        io.out(made.token);
        io.json({ team, ...made });
      }),
    );
  reader
    .command('revoke <reader>')
    .description('take a reader’s tokens and sign-ins back, at once and on every replica')
    .requiredOption('--team <name>', 'of which team')
    .action((id: string, options: { team: string }) =>
      run(async (io) => {
        await requireTeam(io, options.team);
        const rows = await io.database().tenant(
          options.team,
          (tx) => tx`
          insert into nd7.reader_revocation (team, reader) select team, reader from nd7.reader where reader::text = ${id} on conflict do nothing returning 1`,
        );
        if (rows.length === 0)
          throw new CommandError(1, `team ${options.team} has no reader ${id} that is not revoked`);
        io.out(`reader ${id} is revoked`);
        io.json({ team: options.team, reader: id, revoked: true });
      }),
    );
  registerMachine(program, run);
}

function registerMachine(program: Command, run: Run): void {
  const machine = program.command('machine').description('enrolled machines');
  machine
    .command('list')
    .description('the machines of a team')
    .requiredOption('--team <name>', 'of which team')
    .action((options: { team: string }) =>
      run(async (io) => {
        await requireTeam(io, options.team);
        const rows = await io.database().tenant(
          options.team,
          (tx) => tx<{ machine: string; name: string | null; revoked: Date | null }[]>`
          select m.machine, n.name, (select min(since) from nd7.machine_revocation r where r.machine = m.machine) as revoked
          from nd7.machine m left join nd7.machine_name n on n.machine = m.machine order by m.enrolled`,
        );
        for (const row of rows)
          io.out(
            `${row.machine}  ${row.name ?? ''}${row.revoked === null ? '' : `  revoked since ${row.revoked.toISOString()}`}`,
          );
        io.json({ machines: rows });
      }),
    );
  machine
    .command('revoke <machine>')
    .description('refuse a machine from a time on; stated in the log')
    .requiredOption('--team <name>', 'of which team')
    .option('--since <time>', 'from when its key is not to be believed (RFC 3339; default: now)')
    .option('--by <id>', 'who decided, an opaque id u_<32 hex>')
    .action((id: string, options: { team: string; since?: string; by?: string }) =>
      run(async (io) => {
        const since = options.since === undefined ? undefined : new Date(options.since);
        if (since !== undefined && Number.isNaN(since.getTime()))
          throw new CommandError(2, '--since is not a time: write it as 2026-11-29T19:41:00Z');
        const made = await revokeMachine(io, options.team, id, {
          ...(since === undefined ? {} : { since }),
          ...(options.by === undefined ? {} : { by: options.by }),
        });
        io.out(`machine ${id} is revoked since ${made.since}`);
        io.json({ team: options.team, machine: id, ...made });
      }),
    );
}
