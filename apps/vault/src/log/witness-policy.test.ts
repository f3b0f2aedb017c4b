import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { generateKeyPair } from '@nd7/signing';
import { fromHex } from '@nd7/entry';
import { formatVkey } from '@nd7/tlog';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { runCli } from '../cli/program.js';
import { GuardError } from '../db/boot-check.js';
import { TestWorld } from '../testing/vault.fixture.js';
import { whyNotPolicy } from './witness-policy.js';

let world: TestWorld;

beforeAll(async () => {
  world = await TestWorld.make();
  await world.team('acme');
}, 60_000);

afterAll(() => world.close());

const vkey = formatVkey('w1.test', 4, fromHex(generateKeyPair().publicKey) as Uint8Array);
const quorum = `witness w1 ${vkey}\nquorum w1\n`;

describe('a witness policy', () => {
  it.each([
    ['none', `witness w1 ${vkey}\nquorum none\n`, undefined],
    ['a witness', quorum, /quorum w1, and this release gathers no cosignatures.*quorum none/],
    ['a group', `witness w1 ${vkey}\ngroup g any w1\nquorum g\n`, /quorum g,/],
    ['nobody that is defined', 'quorum w2\n', /line 1: "w2" is not defined above/],
    ['nothing', '', /no quorum line/],
  ])('whose quorum is %s', (_what, text, why) => {
    if (why === undefined) expect(whyNotPolicy(text)).toBeUndefined();
    else expect(whyNotPolicy(text)).toMatch(why);
  });

  it('with a quorum is refused where it is set', async () => {
    const file = join(world.folder, 'policy');
    writeFileSync(file, quorum);
    let said = '';
    const exit = await runCli(['team', 'set', 'policy', file, '--team', 'acme'], world.env, {
      out: () => undefined,
      err: (text: string) => (said += text),
    });
    expect([exit, said]).toEqual([2, expect.stringContaining('gathers no cosignatures')]);
    expect(await world.owner`select from nd7.team_setting`).toHaveLength(0);
  });

  it('with a quorum that is set all the same keeps the vault from starting, and says how to mend it', async () => {
    await world.owner`insert into nd7.team_setting (team, name, value) values ('acme', 'policy', ${quorum})`;
    const error: unknown = await world.replica().catch((refused: unknown) => refused);
    expect(error).toBeInstanceOf(GuardError);
    expect((error as GuardError).lines).toEqual([
      expect.stringMatching(
        /policy of team acme cannot be kept: .*quorum w1.*nd7-vault team set policy FILE --team acme/,
      ),
    ]);
    await world.owner`insert into nd7.team_setting (team, name, value) values ('acme', 'policy', 'quorum none')`;
    await expect(world.replica()).resolves.toHaveProperty('url');
  });
});
