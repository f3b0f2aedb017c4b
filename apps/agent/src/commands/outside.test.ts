// What a living session is let write is told to all that judge what runs outside.
import { mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Desk } from '../grants/living.fixture.js';

let desk: Desk;
beforeEach(() => (desk = new Desk(false)));
afterEach(() => desk.end());

const onLinux = process.platform === 'linux' ? it : it.skip;
/** What sessions of this home tell of what they were let write. */
const told = (): string[] => {
  const folder = join(desk.home, 'run/writes');
  return readdirSync(folder).flatMap((name) => {
    const [, ...lines] = readFileSync(join(folder, name), 'utf8').trim().split('\n');
    return lines;
  });
};

onLinux(
  'a grant to write is told before it holds, and stays told when it has ended and when its session has',
  async () => {
    const other = join(desk.user, 'other');
    const bin = join(desk.user, 'bin');
    for (const folder of [other, bin]) mkdirSync(folder);
    const session = await desk.session();
    await desk.session([], other);
    expect(desk.nd7(['allow', '--yes', '--below', 'write', bin]).status).toBe(0);
    expect(desk.nd7(['allow', '--yes', '--below', 'read', '/var/log']).status).toBe(0);
    expect(await session.do(`fs.writeFileSync('${bin}/helper', '')`)).toBe(null);
    expect(told()).toEqual([JSON.stringify({ path: bin, below: true })]);
    expect(desk.nd7(['revoke', '--all']).status).toBe(0);
    await session.end();
    expect(told()).toEqual([JSON.stringify({ path: bin, below: true }), '{"over":true}']);
  },
);

onLinux('a person is told that programs in a folder are run outside; nd7 itself is granted to nobody', async () => {
  const bin = join(desk.user, 'bin');
  mkdirSync(bin);
  desk.variables = { PATH: `${bin}:/usr/local/bin:/usr/bin:/bin` };
  const from = { command: [join(bin, 'reads-key')] };
  desk.policy({ credentials: [{ name: 'key', hosts: ['a.invalid'], way: 'endpoint', endpointVariable: 'KEY', from }] });
  const session = await desk.session();
  expect(session.said).toContain(`the credential key will not be read: the command ${bin}/reads-key is not there`);
  const asked = desk.nd7(['allow', '--below', 'write', bin]);
  expect([asked.status, asked.stderr]).toEqual([
    2,
    expect.stringMatching(/are run outside by their names.*the credential key is read by/s),
  ]);
  const own = desk.nd7(['allow', '--yes', 'write', process.execPath]);
  expect([own.status, own.stderr]).toEqual([1, expect.stringContaining('nd7 itself runs from there')]);
});
