import type { Incident } from '@nd7/vault-api';

/** What happened, as the sentence of a heading. Kinds that this page does not know are named as they are. */
export function incidentSentence(incident: Incident, machine: string): string {
  switch (incident.kind) {
    case 'fork':
      return `${machine} sent a second history for a session that was already signed`;
    case 'disagrees':
      return `${machine} sent entries that disagree with what the vault holds`;
    case 'quiet':
      return `${machine} has gone quiet`;
    case 'lost':
      return `A session of ${machine} broke off without an end`;
    case 'shrank':
      return `A session of ${machine} is shorter than it was`;
    case 'clock':
      return `The clock of ${machine} disagrees with the vault’s`;
    default:
      return `${machine}: ${incident.kind}`;
  }
}

/** How bad a kind is: a fork convicts by itself, all else is to be looked at. */
export function isCritical(incident: Incident): boolean {
  return incident.kind === 'fork';
}
