import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { stopTestPostgres } from '@nd7/testing';
import { TestSession, type TestMachine } from '../testing/session.fixture.js';
import { TestWorld } from '../testing/vault.fixture.js';

let world: TestWorld;
let machine: TestMachine;

beforeAll(async () => {
  world = await TestWorld.make();
  await world.team('acme');
  await world.replica();
  machine = await world.machine('acme');
}, 60_000);

afterAll(async () => {
  await world.close();
  await stopTestPostgres();
});

describe('a segment that goes on where the vault is', () => {
  it('is answered 201 with its receipt, and 200 with the same bytes again', async () => {
    const session = new TestSession(machine.key, 's1').start().seal();
    const first = await machine.ship('s1', session.cut(0));
    expect([first.status, first.text.split('\n')[0]]).toEqual([201, 'c2sp.org/tlog-proof@v1']);
    const again = await machine.ship('s1', session.cut(0));
    expect([again.status, again.text]).toEqual([200, first.text]);
  });
});
