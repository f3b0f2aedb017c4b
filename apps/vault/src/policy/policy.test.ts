// A team's policy from the admin's file to the machine's answer, on a real PostgreSQL.
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { checkTeamPolicy } from '@nd7/receipt';
import { sha256Hex } from '@nd7/signing';
import { utf8 } from '@nd7/entry';
import { parseVkey, type VerifierKey } from '@nd7/tlog';
import { runCli } from '../cli/program.js';
import { TestWorld } from '../testing/vault.fixture.js';
import { setTeamPolicy } from './command.js';

let world: TestWorld;
let vkey: string;

beforeAll(async () => {
  world = await TestWorld.make();
  ({ vkey } = await world.team('acme'));
  await world.team('other');
  await world.replica();
}, 60_000);
afterAll(() => world.close());

const file = (text: string | Uint8Array): string => {
  const path = join(world.folder, 'policy.jsonc');
  writeFileSync(path, text);
  return path;
};
const POLICY =
  '{\n  // ours\n  "nd7": 1, "network": {"deny": ["*.example.com"]}, "files": {"write": {"deny": ["./vendor"]}}\n}\n';

it('is given to the team’s machines as it was written, signed by the key that they have pinned, and to nobody else', async () => {
  const machine = await world.machine('acme');
  expect(await machine.signed('GET', '/v1/team-policy')).toMatchObject({ status: 404, json: { code: 'not-found' } });
  expect(await setTeamPolicy(world.io, 'acme', file(POLICY))).toEqual({ version: 1, changed: true });
  // While the vault runs and holds the signer's lock, and the same again is no new version.
  expect(await setTeamPolicy(world.io, 'acme', file(POLICY))).toEqual({ version: 1, changed: false });
  const { status, json } = await machine.signed('GET', '/v1/team-policy');
  expect([status, json]).toEqual([200, { version: 1, note: expect.any(String), policy: POLICY }]);
  const pinned = { origin: 'vault.test/acme', key: parseVkey(vkey) as VerifierKey };
  expect(checkTeamPolicy(String(json['note']), sha256Hex(utf8(POLICY)), pinned)).toMatchObject({
    version: 1,
    origin: 'vault.test/acme',
  });
  const stranger = await world.machine('other');
  expect((await stranger.signed('GET', '/v1/team-policy')).status).toBe(404);
  expect((await machine.fetch('GET', '/v1/team-policy')).status).toBe(401);
  expect(await setTeamPolicy(world.io, 'acme', file('{"nd7": 1}'))).toEqual({ version: 2, changed: true });
  expect((await machine.signed('GET', '/v1/team-policy')).json).toMatchObject({ version: 2, policy: '{"nd7": 1}' });
});

it('is refused where it cannot be meant, with its line, and nothing is signed', async () => {
  const say = async (text: string | Uint8Array, team = 'other') => {
    const lines: string[] = [];
    const exit = await runCli(['policy', 'set', team, file(text)], world.env, {
      out: (line) => lines.push(line),
      err: (line) => lines.push(line),
    });
    return [exit, lines.join('')] as const;
  };
  expect(await say('{\n "nd7": 1,\n "files": {"write": {"deny": ["vendor"]}}}')).toEqual([
    2,
    expect.stringMatching(/policy\.jsonc:3: "vendor" does not say where it begins/),
  ]);
  expect(await say('{"nd7": 1, "reed": {}}')).toEqual([2, expect.stringContaining('reed')]);
  expect(await say(Uint8Array.of(0x22, 0xff, 0x22))).toEqual([2, expect.stringContaining('not UTF-8')]);
  expect(await say('{"nd7": 1}', 'nobody')).toEqual([1, expect.stringContaining('there is no team')]);
  const rows = await world.owner`select team from nd7.team_policy where team = 'other'`;
  expect([...rows]).toEqual([]);
});

it('is never changed, and a version is taken once', async () => {
  await setTeamPolicy(world.io, 'other', file('{"nd7": 1}'));
  await expect(world.owner`update nd7.team_policy set policy = '{}' where team = 'other'`).rejects.toThrow();
  await expect(world.owner`delete from nd7.team_policy where team = 'other'`).rejects.toThrow();
  const texts = ['a', 'b', 'c'].map((name) => `{"nd7": 1, "network": {"deny": ["${name}.example.com"]}}`);
  const paths = texts.map((text, i) => {
    const path = join(world.folder, `p${String(i)}.jsonc`);
    writeFileSync(path, text);
    return path;
  });
  const all = await Promise.allSettled(paths.map((path) => setTeamPolicy(world.io, 'other', path)));
  const versions = all.flatMap((one) => (one.status === 'fulfilled' ? [one.value.version] : []));
  expect(new Set(versions).size).toBe(versions.length);
  expect(versions.length).toBeGreaterThan(0);
  const rows = await world.owner<
    { version: string }[]
  >`select version::text from nd7.team_policy where team = 'other' order by version`;
  expect(rows.map(({ version }) => Number(version))).toEqual(rows.map((_, i) => i + 1));
});
