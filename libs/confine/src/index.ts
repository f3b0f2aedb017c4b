/**
 * A ruleset made to hold on this machine: the plan for its kernel and disk (mounts, Landlock, call filter), the launch of a program inside
 * it, and the manifest that says of every property what makes it hold and what was shown of it before the program started.
 *
 * It promises that a program is started only inside a boundary that was tried from inside, and that the session ends with the process that
 * started it. It does not promise what `docs/limits.md` says: names that are made later, sockets bound later, bugs of the kernel.
 *
 * Called by `nd7 run` and `nd7 doctor`. Linux only; `native/launch` does the work.
 */
export { layOut, prepare, PrepareError, type Prepared, type SessionInput } from './session.js';
export { bareManifest } from './bare/manifest.js';
export { aloneManifest, NOT_OF_T3 } from './alone/manifest.js';
export {
  compareLeaves,
  packLeaves,
  recordLeaves,
  unpackLeaves,
  type LeafChange,
  type LeafRecord,
  type LeafState,
} from './alone/leaves.js';
export type { BareBuilt } from './bare/build.js';
export type { Shown } from './view/build.js';
export { launch, type Doors, type Ended, type Launched, type LaunchFailure, type Proof, type Start } from './launch.js';
export type { Opened } from './channel.js';
export { GrantError, type Widening } from './grant.js';
export type { AskedCommand, CommandAnswer, CommandEnd, CommandFront } from './broker.js';
export type { Answer, Connected, ConnectedEnd, Front, Observed, ObservedEvent, Question } from './observe.js';
export type { Learned } from './learned.js';
export { manifest, missing, type ManifestRow, type Status, type Supervised } from './manifest.js';
export { adviceFor, namespaceRefusal, type Advice } from './advice.js';
export { probeKernel, tiersOf, type KernelFacts } from './probe.js';
export { landlockOf, RESOLVES_UNIX } from './landlock.js';
export { findLauncher, findRelay } from './locate.js';
export { encodePlan, type Listener, type Plan, type PlanTier, type Route, type View } from './plan.js';
export { callFilter } from './filter/filter.js';
export { terminalFilter } from './filter/box.js';
export { countsAsGitDir } from './view/scan.js';
export { GitFiles } from './view/git-index.js';
export { compileSeatbelt, type SeatbeltInput, type SeatbeltProfile } from './seatbelt/compile.js';
export { prepareSeatbelt, type SeatbeltSession } from './seatbelt/prepare.js';
export { launchSeatbelt, proofsOf, type SeatbeltLaunch, type SeatbeltPlan, type Tried } from './seatbelt/launch.js';
export { seatbeltManifest } from './seatbelt/manifest.js';
