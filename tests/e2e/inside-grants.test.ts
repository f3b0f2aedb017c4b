// The real client inside `nd7 run` while a person widens the session from another terminal: what its own Write does, and what its model is told.
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { callsIn, findClient, until, VERSION, type World } from './claude.fixture.js';
import { agentChains, allow, bash, insideWorld, Listener, of, runChain, withClient } from './inside.fixture.js';

let world: World;
afterEach(async () => {
  Listener.end();
  await world.end();
});

const waitFor = (name: string) => bash(`while [ ! -e ${name} ]; do sleep 0.05; done`);
const write = (file_path: string, content: string) => ({ calls: [{ tool: 'Write', input: { file_path, content } }] });

/** Resolves when so many calls have been announced. */
const begun = (calls: number) =>
  until(`call ${calls} has begun`, () =>
    agentChains(world).some((session) => of(world.entries(session), 'tool.before').length >= calls),
  );
const go = (name: string) => writeFileSync(join(world.project, name), '');

withClient(`Claude Code ${VERSION} in a session that is widened`, findClient(), (path) => {
  it.each([
    ['T1', 'the mount view'],
    ['T2', 'Landlock'],
  ])(
    'in %s its own Write makes a file outside the project while that is granted, not before and not after; the model is told why',
    async (tier, refuser) => {
      const file = (name: string) => `\${CWD}/../home/notes/${name}`;
      const steps = [
        write(file('before.txt'), 'BEFORE'),
        waitFor('go-1'),
        write(file('new.txt'), 'GRANTED'),
        waitFor('go-2'),
        write(file('after.txt'), 'AFTER'),
        { text: 'Done.' },
      ];
      world = await insideWorld(path, { widened: { steps } }, tier);
      const own = join(world.home, 'notes');
      mkdirSync(own);
      const listener = await Listener.before(world.port);
      world.port = listener.port;
      allow(world, listener.port);
      const { output } = world.start('[[scenario:widened]] go');
      await begun(2);
      expect(existsSync(join(own, 'before.txt'))).toBe(false);
      world.nd7('allow', 'write', '--below', own);
      go('go-1');
      await begun(4);
      expect(readFileSync(join(own, 'new.txt'), 'utf8')).toBe('GRANTED');
      world.nd7('revoke', '--all');
      go('go-2');
      expect(callsIn(await output).map(({ name }) => name)).toEqual(['Write', 'Bash', 'Write', 'Bash', 'Write']);
      expect([existsSync(join(own, 'after.txt')), existsSync(join(own, 'new.txt'))]).toEqual([false, true]);
      const run = runChain(world);
      expect(run.entries.filter(({ source }) => source === 'decision:grant').map(({ kind }) => kind)).toEqual([
        'grant',
        'revoke',
      ]);
      expect(world.verdict(run.session)).toMatchObject({ verdict: 'intact' });
      const told = listener.bodies.filter((body) => body.includes('this call met the boundary')).at(-1) ?? '';
      expect(told).toContain(`${refuser} refuses to write ${join(own, 'before.txt')}`);
      expect(told).toMatch(new RegExp(`/(run/nd7|run/s-[0-9a-f]+)/nd7 ask write ${join(own, 'before.txt')}`));
      // Its commands are the broker’s in both.
      const commands = run.entries.filter(({ kind, source }) => kind === 'exec' && source === 'effect:exec-broker');
      expect(new Set(commands.map(({ data }) => data['how']))).toEqual(new Set(['broker']));
      expect(commands.filter(({ data }) => data['tied'] === 'text')).toHaveLength(2);
      expect(told).not.toContain(`refuses to write ${join(own, 'new.txt')}`);
    },
  );

  it('asks by a shell command, waits, and is granted the next call; refused names and hosts are explained to the model once', async () => {
    const target = '${CWD}/../home/notes/asked.txt';
    const steps = [
      bash('mkdir .vscode; curl -sS -o /dev/null -x "$HTTPS_PROXY" https://refused.invalid/; mkdir .vscode; true'),
      bash('node -e "fs.mkdirSync(String.fromCharCode(46) + \'vscode\')"; true'),
      bash('/run/nd7/nd7 ask --wait --reason "the notes" write ../home/notes/asked.txt'),
      write(target, 'ASKED'),
      write(target, 'TWICE'),
      { text: 'Done.' },
    ];
    world = await insideWorld(path, { asks: { steps } });
    mkdirSync(join(world.home, 'notes'));
    const listener = await Listener.before(world.port);
    world.port = listener.port;
    allow(world, listener.port);
    const { output } = world.start('[[scenario:asks]] go');
    const requests = () =>
      (
        JSON.parse(world.nd7('grants', '--json')) as { sessions: { requests: { id: string; says: string }[] }[] }
      ).sessions.flatMap((one) => one.requests);
    await begun(3);
    await until('it is asked', () => requests().length === 1);
    expect(requests()).toMatchObject([
      { says: 'the notes', right: 'write', what: join(world.home, 'notes/asked.txt') },
    ]);
    world.nd7('allow', '--for', 'call', requests()[0]?.id ?? '');
    expect(callsIn(await output)).toHaveLength(5);
    expect(readFileSync(join(world.home, 'notes/asked.txt'), 'utf8')).toBe('ASKED');
    const run = runChain(world);
    expect(
      run.entries
        .filter(({ source }) => /^(decision:grant|intent:ask)$/.test(source))
        .map(({ kind, data }) => `${kind} ${String(data['reason'] ?? data['for'])}`),
    ).toEqual(['permission.asked the notes', 'grant call', 'revoke call ended']);
    const last = listener.bodies.at(-1) ?? '';
    expect(last.split('table of names refused mkdir of').length - 1).toBe(1);
    expect(last).toContain('the proxy refused refused.invalid:443');
    expect(listener.bodies.some((body) => body.includes('/run/nd7/nd7 ask read|write|net|socket'))).toBe(true);
  });
});
