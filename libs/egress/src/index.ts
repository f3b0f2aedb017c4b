/**
 * The only way out of a confined session: a proxy that lets through by host name and port, and says and records why not.
 *
 * It promises that nothing is dialled but an address that was checked, for a name that a rule allows; that a name which is refused is never
 * looked up; that a tunnel carries nothing before its ClientHello has named the very host it was opened for; and that every answer is
 * recorded before it takes effect. It does not look into TLS but for the hosts whose credentials it puts on: what a server at an allowed host
 * does with a connection is its own affair.
 */
export { SessionAuthority } from './authority.js';
export { Egress } from './proxy.js';
export type { EgressOptions, LostRelay } from './proxy.js';
export type { Asker, EgressDecision, EndedConnection, Ends, Place, RefusalReason, Via } from './decision.js';
export type { ReadSecret } from './endpoint.js';
export { POOL, type AddressPool } from './pool.js';
export { readSecret } from './secret.js';
export { join } from './tunnel.js';
export { readClientHello } from './client-hello.js';
export type { Hello, HelloFault } from './client-hello.js';
