/**
 * Shipping: deliver a session's segments to a vault until a verified receipt is held for every entry (docs/format.md, docs/receipt.md).
 *
 * It promises: nothing counts as shipped before its receipt was verified under the pinned key and is on the disk; nothing acknowledged is sent
 * again, unless the vault has lost it, which is an alarm; a kill at any moment loses nothing and sends the same cut again; a vault that lies makes it
 * stop with a ShipError and everything kept. It does not verify seals (the vault and `@nd7/verify` do) and writes nothing into a log.
 * `Heart` says beside it that the machine is there and how far its sessions are.
 * Called by the recorder and by `nd7 enrol`, `nd7 ship`.
 */
export { VaultClient } from './client.js';
export type { MachineAccess, StatementAnswer, VaultClientOptions } from './client.js';
export { enrol, nameHash } from './enrol.js';
export type { Enrolled, EnrolOptions } from './enrol.js';
export { isShipError, isVaultError, ShipError, VaultError } from './error.js';
export type { ShipCode, VaultCode } from './error.js';
export { Heart, HEARTBEAT_MS } from './heart.js';
export type { AwayReason, HeartOptions, HeartStatus, SessionMark } from './heart.js';
export { ShipLoop } from './loop.js';
export type { ShipLoopOptions } from './loop.js';
export type { Standing } from './tracked.js';
export { Outbox } from './outbox.js';
export { Shipper } from './shipper.js';
export type { Alarm, ShipEvent, ShipperOptions, ShippedSegment, ShipReport } from './report.js';
export type { SessionSource } from './cut.js';
export { readVaultFile, trustOf } from './vault-file.js';
export type { VaultFile } from './vault-file.js';
export { offeredTeamPolicy, pullTeamPolicy, readTeamPolicy } from './team-policy.js';
export type { HeldTeamPolicy, PullParts } from './team-policy.js';
