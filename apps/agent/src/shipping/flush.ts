// Ships what is recorded: asks the resident recorder, which is the one that ships, and does it in this process where none runs.
import { ShipError, ShipLoop, readVaultFile, type ShipReport, type VaultFile } from '@nd7/ship';
import { chainOf, Home, listSessions, machineKey, openSession, receiptCounts, SessionReader } from '@nd7/journal';
import { systemClock, systemRandom } from '@nd7/signing';
import { askJson } from '../recorder/client.js';

/** How a session's pass ended when it could not be shipped. */
export interface Failed {
  session: string;
  state: 'failed';
  code: string;
  problem: string;
  /** The chain in which the recorder goes on, where this one cannot be shipped any more. */
  continued_as?: string;
}
export type Outcome = ShipReport | Failed;

/** Where this home ships to; throws ShipError `not-enrolled` with the next step. */
export function enrolledAt(home: string): VaultFile {
  const vault = readVaultFile(home);
  if (vault !== undefined) return vault;
  throw new ShipError(
    'not-enrolled',
    `this machine is not enrolled at a vault (no ${home}/vault.json): \`nd7 enrol URL TOKEN\` with a token from \`nd7-vault enrolment create\``,
  );
}

/** Sessions of the home that have entries without a receipt, the oldest first. */
export function unshipped(home: Home): string[] {
  return listSessions(home)
    .filter(({ session, head }) => (receiptCounts(home, session).at(-1) ?? 0) < (head?.entries ?? Infinity))
    .map(({ session }) => session)
    .reverse();
}

/** Ships the sessions named until receipts are held, or it is clear why not. */
export async function flush(root: string, sessions: readonly string[]): Promise<Outcome[]> {
  const vault = enrolledAt(root);
  if (sessions.length === 0) return [];
  const asked = await askJson(root, 'ship', { sessions }, 300_000);
  const home = new Home(root);
  const outcomes =
    asked !== undefined && asked['error'] === undefined
      ? (Object.values(asked['sessions'] ?? asked) as Outcome[])
      : await flushHere(home, vault, sessions);
  return outcomes.map((outcome) => withContinuation(home, outcome));
}

/** A failed session with the chain in which the recorder goes on. */
export function withContinuation(home: Home, outcome: Outcome): Outcome {
  const { session } = chainOf(home, outcome.session);
  return outcome.state !== 'failed' || session === outcome.session ? outcome : { ...outcome, continued_as: session };
}

async function flushHere(home: Home, vault: VaultFile, sessions: readonly string[]): Promise<Outcome[]> {
  const loop = loopHere(home, vault);
  try {
    return Object.values(await loop.flush(sessions)) as Outcome[];
  } finally {
    await loop.stop();
  }
}

/** What ships in this process, where no recorder runs. */
export function loopHere(home: Home, vault: VaultFile): ShipLoop {
  return new ShipLoop({
    home: home.root,
    vault,
    signer: machineKey(home),
    clock: systemClock,
    random: systemRandom,
    source: (session) => {
      const reader = new SessionReader(home, session);
      return {
        session,
        entries: () => reader.entries(),
        range: (from, to) => reader.range(from, to),
        async seal() {
          const journal = await openSession(home, session);
          try {
            // A chain that cannot go on is continued under another id; this one is shipped as far as it is sealed.
            if (journal.session === session) await journal.seal();
          } finally {
            await journal.close();
          }
        },
        isContinued: () => chainOf(home, session).session !== session,
      };
    },
  });
}
