import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { systemRandom } from '@nd7/signing';
import { Database } from '../db/database.js';
import { VaultConfig } from '../config.js';
import { TestWorld } from '../testing/vault.fixture.js';
import { PostgresBodies } from './bodies.js';
import { PIECE } from './copy-body.js';

let world: TestWorld;
let db: Database;
let bodies: PostgresBodies;

beforeAll(async () => {
  world = await TestWorld.make();
  await world.team('acme');
  db = new Database(new VaultConfig(world.env));
  bodies = new PostgresBodies(db);
}, 60_000);

afterAll(async () => {
  await db.onApplicationShutdown();
  await world.close();
});

async function stored(length: number): Promise<{ sealed: Buffer; name: string }> {
  const sealed = Buffer.from(systemRandom(length));
  return { sealed, name: await db.tenant('acme', (tx) => bodies.put(tx, 'acme', sealed)) };
}

describe('a body in pieces', () => {
  it.each([29, PIECE - 1, PIECE, PIECE + 1, 8 * PIECE - 1, 8 * PIECE, 8 * PIECE + 1, 16 * PIECE, 1_000_003])(
    'of %i bytes comes back as it was, and only to its team',
    async (length) => {
      const { sealed, name } = await stored(length);
      expect((await bodies.get('acme', name))?.equals(sealed)).toBe(true);
      expect(await bodies.get('other', name)).toBeUndefined();
      const [row] = await world.owner`select count(*)::int as pieces from nd7.body where hash = ${name}`;
      expect(row?.['pieces']).toBe(Math.floor(length / PIECE) + 1);
      // Twice is once.
      await db.tenant('acme', (tx) => bodies.put(tx, 'acme', sealed));
      expect((await bodies.get('acme', name))?.equals(sealed)).toBe(true);
    },
  );

  it.each([100, 2 * PIECE])(
    'of %i bytes has an end: what the service’s role adds behind it changes nothing',
    async (length) => {
      const { sealed, name } = await stored(length);
      const next = Math.floor(length / PIECE) + 1;
      await db.tenant(
        'acme',
        (tx) =>
          tx`insert into nd7.body (team, hash, place, piece) values ('acme', ${name}, ${next}, ${Buffer.from('more')})`,
      );
      expect((await bodies.get('acme', name))?.equals(sealed)).toBe(true);
    },
  );

  it('is nothing when a piece is changed or gone', async () => {
    for (const place of [0, 1, 2]) {
      const { name } = await stored(2 * PIECE + 7);
      await world.owner.begin(async (tx) => {
        await tx`alter table nd7.body disable trigger refuse_change`;
        if (place === 1)
          await tx`update nd7.body set piece = set_byte(piece, 3, get_byte(piece, 3) # 1) where hash = ${name} and place = 1`;
        else await tx`delete from nd7.body where hash = ${name} and place = ${place}`;
        await tx`alter table nd7.body enable always trigger refuse_change`;
      });
      expect(await bodies.get('acme', name)).toBeUndefined();
    }
  });
});
