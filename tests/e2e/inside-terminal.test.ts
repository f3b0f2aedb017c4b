// The real client inside `nd7 run` at a terminal, in tiers and in bubblewrap's box, and by each way that it is typed.
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { findClient, has, until, VERSION, type World } from './claude.fixture.js';
import { agentChains, closed, insideWorld, of, runChain, settle, withClient, type Typed } from './inside.fixture.js';

let world: World;
afterEach(() => world.end());

const hasBwrap = spawnSync('bwrap', ['--ro-bind', '/', '/', '--unshare-net', 'true']).status === 0;
const lacks = has('tmux') ? undefined : 'no tmux';
describe.each<[string, Typed]>([
  ['T1', 'Node'],
  ['T2', 'Node'],
  ['T1', 'the command on PATH'],
  ['T2', 'the command on PATH'],
  ['bwrap', 'Node'],
  ['bwrap', 'the command on PATH'],
])('in %s, by %s,', (tier, typed) => {
  withClient(
    `Claude Code ${VERSION} inside nd7 run, interactive (tmux)`,
    findClient(),
    (path) => {
      const test = tier !== 'bwrap' || hasBwrap ? it : it.skip;
      test('a session typed at a terminal, stopped by Ctrl-Z and gone on with', async () => {
        world = await insideWorld(path, {}, tier, typed);
        settle(world, VERSION);
        const socket = join(world.folder, 'tmux');
        const tmux = (...args: string[]) =>
          spawnSync('tmux', ['-S', socket, ...args], { encoding: 'utf8', env: world.environment() }).stdout;
        const screen = () => tmux('capture-pane', '-p', '-t', 's');
        const type = async (text: string) => {
          tmux('send-keys', '-t', 's', '-l', text);
          await new Promise((resolve) => setTimeout(resolve, 400));
          tmux('send-keys', '-t', 's', 'Enter');
        };
        try {
          const assignments = Object.entries(world.environment({ PS1: 'shell> ' })).map(
            ([name, value]) => `${name}='${value}'`,
          );
          const shell = `exec env -i ${assignments.join(' ')} bash --norc --noprofile -i`;
          tmux('new-session', '-d', '-s', 's', '-x', '120', '-y', '40', '-c', world.project, shell);
          const command = [
            ...world.before,
            path,
            '--permission-mode',
            'acceptEdits',
            '--allowedTools',
            'Bash,Read,Write,Edit',
          ];
          await until('the shell is there', () => screen().includes('shell>'));
          await type(command.map((word) => `'${word}'`).join(' '));
          await until('the client has begun', () => /❯/.test(screen()) && agentChains(world).length === 1);
          const [session = ''] = agentChains(world);
          await type('[[scenario:basic]] go');
          await until('the turn has ended', () => of(world.entries(session), 'turn.end').length >= 1);
          tmux('send-keys', '-t', 's', 'C-z');
          await until('the shell has the terminal', () => /Stopped/.test(screen()));
          await type('fg');
          await until('the client is back', () => /❯/.test(screen()));
          await type('[[scenario:one]] go');
          await until('the second turn has ended', () => of(world.entries(session), 'turn.end').length >= 2);
          await type('/exit');
          await until('the session is sealed', closed(world, session));
          const entries = world.entries(session);
          expect(of(entries, 'prompt').map(({ data }) => data['prompt'])).toEqual([
            '[[scenario:basic]] go',
            '[[scenario:one]] go',
          ]);
          expect(
            of(entries, 'tool.before')
              .slice(0, 4)
              .map(({ data }) => data['tool_name']),
          ).toEqual(['Bash', 'Write', 'Read', 'Edit']);
          expect(of(entries, 'session.confined')).toMatchObject([{ data: { run: runChain(world).session } }]);
          expect(world.verdict(session)).toMatchObject({ verdict: 'intact' });
        } finally {
          tmux('kill-server');
        }
      });
    },
    lacks,
  );
});
