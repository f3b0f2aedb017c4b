import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { EmbeddedSigner } from '../signer/embedded.js';
import { SignerServer } from '../signer/socket-server.js';
import { TestSession, type TestMachine } from '../testing/session.fixture.js';
import { TestWorld } from '../testing/vault.fixture.js';

let world: TestWorld;
let signer: SignerServer;
let urls: string[];
let ahead = 0;

/** Two replicas on one database, each with its own watch. */
beforeAll(async () => {
  world = await TestWorld.make({
    clock: { now: () => Date.now() + ahead },
    env: { ND7_VAULT_WATCH_EVERY: '3600' },
  });
  await world.team('acme');
  mkdirSync(join(world.folder, 'run'), { mode: 0o700 });
  const socket = join(world.folder, 'run', 'signer');
  signer = await SignerServer.listen(EmbeddedSigner.open(join(world.folder, 'keys', 'signer')), socket);
  urls = [];
  for (let i = 0; i < 2; i += 1) urls.push((await world.replica({ ND7_VAULT_SIGNER_SOCKET: socket })).url);
}, 60_000);

afterAll(async () => {
  await world.close();
  await signer.close();
});

const look = async (): Promise<void> => {
  await Promise.all(world.replicas.map((replica) => replica.look()));
};
const kinds = async (machine: TestMachine): Promise<string[]> =>
  (
    await world.owner<
      { kind: string }[]
    >`select kind from nd7.incident where machine = ${machine.key.publicKey} order by kind, at`
  ).map((row) => row.kind);

describe('two replicas that look at once', () => {
  it('raise what they both see once, and state it once in the log', async () => {
    const machines: TestMachine[] = [];
    for (let i = 0; i < 4; i += 1) machines.push(await world.machine('acme', `box-${String(i)}`));
    const sessions = machines.map((machine) => new TestSession(machine.key, 'one').start().seal());
    for (const [i, session] of sessions.entries()) await machines[i]?.ship('one', session.cut(0));
    const beat = async (): Promise<void> => {
      for (const [i, machine] of machines.entries()) {
        machine.ahead = ahead;
        await machine.beat({ sessions: [sessions[i]?.named()] });
      }
    };
    await look();
    for (let episode = 0; episode < 3; episode += 1) {
      await beat();
      await look();
      ahead += 70 * 60_000;
      await Promise.all([look(), look(), look()]);
      await look();
    }
    const all = ['machine-quiet', 'session-unclosed'].flatMap((kind) => [kind, kind, kind]);
    for (const machine of machines) expect(await kinds(machine)).toEqual(all);
    expect(await world.owner`select from nd7.log_queue where statement like '%reason lost%'`).toHaveLength(4);
    expect(await world.owner`select from nd7.incident_change`).toHaveLength(4 * 2 * 2);
  });

  it('pass by a team that another looks at in this moment', async () => {
    const machine = await world.machine('acme', 'passed');
    machine.ahead = ahead;
    await machine.beat();
    ahead += 60 * 60_000;
    const lock = await world.owner.reserve();
    await lock`select pg_advisory_lock(hashtextextended('nd7 watch acme', 0))`;
    await look();
    expect(await kinds(machine)).toEqual([]);
    await lock`select pg_advisory_unlock(hashtextextended('nd7 watch acme', 0))`;
    lock.release();
    await look();
    expect(await kinds(machine)).toEqual(['machine-quiet']);
    expect((await machine.fetch('GET', '/metrics')).text).toMatch(
      /^nd7_watch_looks_total\{result="elsewhere"\} [1-9]/m,
    );
  });

  it('and requests that meet one another raise it once too', async () => {
    const machine = await world.machine('acme', 'clock');
    const at = (url: string | undefined): TestMachine =>
      Object.assign(Object.create(machine) as TestMachine, { url, ahead: ahead - 200_000 });
    for (let round = 0; round < 5; round += 1)
      await Promise.all(Array.from({ length: 8 }, (_, i) => at(urls[i % 2]).beat()));
    expect(await kinds(machine)).toEqual(['clock-disagrees']);
  });
});
