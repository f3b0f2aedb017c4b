// Grants in builds with sanitizers and without a user namespace, and what a front must not say.
import { readdirSync, readFileSync, renameSync } from 'node:fs';
import { constants } from 'node:os';
import { join } from 'node:path';
import type { Duplex } from 'node:stream';
import { Living } from './living.fixture.js';
import { buildLaunchers, Machine, USERS } from './session.fixture.js';

const { ENOENT } = constants.errno;

beforeAll(buildLaunchers, 120_000);

it.each(USERS)('holds with the sanitizers as well, for %s', async (_who, user) => {
  const machine = new Machine(user, 'nd7-launch-sanitized');
  machine.file('hidden/deep/file', 'deep\n');
  machine.file('hidden/.env', 'SECRET\n');
  machine.file('seen/file', 'seen\n');
  machine.hide('hidden');
  machine.protect('.envrc');
  machine.protect('config', { at: 'git-dir', treatment: 'mediate', mediator: 'git-config' });
  machine.mask('**/.env*', { under: [machine.home], exceptTracked: false });
  machine.judge = () => Promise.resolve({ allow: true });
  const living = await Living.of(machine);
  try {
    const [hidden, seen] = [join(machine.home, 'hidden'), join(machine.home, 'seen')];
    const said: string[] = [];
    for (let i = 0; i < 6; i += 3) {
      expect(await living.widen(i + 1, 'read', join(hidden, 'deep/file'))).toBe(0);
      expect(await living.widen(i + 2, 'read', hidden, true)).toBe(0);
      expect(await living.widen(i + 3, 'write', seen, true)).toBe(0);
      renameSync(machine.file('other', 'deep\n'), join(hidden, 'deep/file'));
      said.push(
        await living.say(`
          cat ${hidden}/deep/file; cat ${hidden}/.env; cd ${seen}; mkdir -p d/e; echo x > d/e/f; mv d g; ln g/e/f h; chmod 600 h; touch -d @1 h; rm -r g h; ln -s file l; echo y > l; rm l; echo x > .envrc
          git init -q r; git -C r config user.name me; git -C r config user.name; rm -rf r; cd`),
      );
      for (const id of [2, 1, 3]) expect(await living.narrow(i + id)).toBe(0);
      expect(await living.narrow(i + 1)).toBe(ENOENT);
    }
    for (const text of said) expect(text).toMatch(/^deep\n(.*denied.*\n){2}me$/);
    expect(readFileSync(join(seen, 'file'), 'utf8')).toBe('y\n');
    expect(await living.end()).toBe(0);
  } finally {
    machine.close();
  }
});

it.each([
  ['a frame of an answer that is none', [8, 9, 1]],
  ['a grant without a path', [16, 2, 1, 1, 0]],
  ['a grant of nothing', [19, 2, 1, 3, 0, '/a\0']],
  ['a relative path', [19, 2, 1, 1, 0, 'aa\0']],
  ['the end of no grant', [8, 3, 0]],
  ['an end that goes on', [12, 3, 1, 0]],
] as [string, (number | string)[]][])('ends the session for %s', async (_what, frame) => {
  const machine = new Machine(undefined);
  machine.protect('.envrc');
  const living = await Living.of(machine);
  try {
    expect(await living.say('echo up')).toBe('up');
    const channel = living.session.process.stdio.at(5) as Duplex;
    channel.write(Buffer.concat(frame.map((part) => (typeof part === 'string' ? Buffer.from(part) : number(part)))));
    expect(await living.session.ended).toMatchObject({ failure: { step: 'observe' } });
  } finally {
    await living.end();
    machine.close();
  }
});

(process.geteuid?.() === 0 ? it : it.skip)('holds without a user namespace, as root', async () => {
  const machine = new Machine(undefined);
  machine.file('hidden/file', 'hidden\n');
  machine.file('seen/file', 'seen\n');
  machine.hide('hidden');
  machine.protect('.envrc');
  const living = await Living.of(machine, { userNamespace: false });
  try {
    expect(await living.widen(1, 'read', join(machine.home, 'hidden/file'))).toBe(0);
    expect(await living.widen(2, 'write', join(machine.home, 'seen'), true)).toBe(0);
    expect(
      await living.say(
        `cat ${machine.home}/hidden/file; echo x > ${machine.home}/seen/new; rm ${machine.home}/seen/file`,
      ),
    ).toBe('hidden');
    expect([await living.narrow(1), await living.narrow(2)]).toEqual([0, 0]);
    expect(await living.say(`cat ${machine.home}/hidden/file; rm ${machine.home}/seen/new`)).toMatch(
      /No such[^]*Read-only/,
    );
    expect(readdirSync(join(machine.home, 'seen'))).toEqual(['new']);
  } finally {
    await living.end();
    machine.close();
  }
});

function number(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value);
  return bytes;
}
