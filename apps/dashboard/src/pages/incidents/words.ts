import type { Incident } from '@nd7/vault-api';

/** What happened, as the sentence of a heading. Kinds that this page does not know are named as they are. */
export function incidentSentence(incident: Incident, machine: string): string {
  switch (incident.kind) {
    case 'fork':
      return `${machine} sent a second history for a session that was already signed`;
    case 'disagrees':
      return `${machine} sent entries that disagree with what the vault holds`;
    case 'machine-quiet':
      return `${machine} has gone quiet`;
    case 'session-quiet':
      return `${machine} speaks of entries that it does not send`;
    case 'session-unclosed':
      return `A session of ${machine} broke off without an end`;
    case 'tail-shrank':
      return `A session of ${machine} is shorter than it was`;
    case 'clock-disagrees':
      return `The clock of ${machine} disagrees with the vault’s`;
    case 'alarm':
      return `The recorder on ${machine} raised an alarm`;
    default:
      return `${machine}: ${incident.kind}`;
  }
}

/** By what an incident ended, as the vault says it. */
export function overSentence({ why }: NonNullable<Incident['over']>): string {
  return ENDED.get(why) ?? why;
}

const ENDED: ReadonlyMap<string, string> = new Map(
  Object.entries({
    heard: 'the machine was heard again',
    slept: 'the machine says that it was asleep',
    revoked: 'the machine was revoked',
    shipped: 'the entries came',
    closed: 'the session was closed after all',
    resumed: 'the session went on',
    listed: 'the machine names the session again',
    forked: 'the session forked and goes on in another',
    agrees: 'the clock has been right for a while',
    regrown: 'the machine names as many entries as before',
  }),
);

/** What the vault saw, as rows of a list of facts; times are as the vault sent them. */
export function seenRows({ seen = {} }: Incident): [string, string][] {
  const number = (n: number): string => n.toLocaleString('en');
  const rows: [string, string | undefined][] = [
    ['Last heard', seen.heard],
    ['Promised', seen.interval === undefined ? undefined : `to be heard every ${number(seen.interval)} s`],
    ['Said it goes', seen.away],
    ['Entries named', seen.entries === undefined ? undefined : number(seen.entries)],
    ['Entries before', seen.was === undefined ? undefined : number(seen.was)],
    ['Entries held', seen.held === undefined ? undefined : number(seen.held)],
    ['Machine’s clock', seen.machine_time],
    ['Off by', seen.off_by_ms === undefined ? undefined : offBy(seen.off_by_ms)],
    ['Alarms', seen.alarms === undefined ? undefined : number(seen.alarms)],
    ['Heartbeat', seen.heartbeat === undefined ? undefined : `number ${number(seen.heartbeat)}`],
  ];
  return rows.filter((row): row is [string, string] => row[1] !== undefined);
}

function offBy(ms: number): string {
  return `${Math.abs(Math.round(ms / 1000)).toLocaleString('en')} s, ${ms < 0 ? 'behind' : 'ahead of'} the vault’s`;
}

/** How bad a kind is: a fork convicts by itself, all else is to be looked at. */
export function isCritical(incident: Incident): boolean {
  return incident.kind === 'fork';
}
