/**
 * The queue's floor: below it every leaf id is settled, so that finding the leaves that wait does not mean reading all that ever were.
 *
 * Ids are given out in order, but transactions end in any order: id 7 may become visible after id 8 has its index. An id is settled when
 * the transaction that took it has ended. That is known so: at some moment ids up to `given` have been given out, each to a transaction
 * that had its number before (`nd7.log_enqueue` sees to that), so with a number below that of a transaction begun later. Once all
 * transactions up to that number have ended, ids up to `given` are settled: each has its row, or never will.
 *
 * The floor only saves work. One too low costs a longer search; this one is never too high.
 */
export class QueueFloor {
  /** Ids up to `given` belong to transactions numbered below `xact`. Written by the rounds of one sequencer, one after the other. */
  private mark: { given: number; xact: bigint } | undefined;

  /** Up to where ids are settled by now, given the number below which all transactions have ended (`pg_snapshot_xmin`). */
  settled(running: bigint): number {
    return this.mark !== undefined && running > this.mark.xact ? this.mark.given : 0;
  }

  /** Tells that `given` was read before transaction `xact` took its number. Kept until it has served. */
  note(given: number, xact: bigint, running: bigint): void {
    if (this.mark === undefined || running > this.mark.xact) this.mark = { given, xact };
  }
}
