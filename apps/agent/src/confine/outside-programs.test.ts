// What nd7 runs outside while a session lives is nothing that the session has made.
import { existsSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { TestBook, removeMade } from '../grants/book.fixture.js';
import { removeThrowAways } from '../testing/recorder.fixture.js';
import { closedFolders, commandOutside } from './outside-programs.js';
import { TestSession } from './session.fixture.js';

afterAll(() => {
  removeMade();
  removeThrowAways();
});

it('folders of programs are those that the session cannot write to, by any name', () => {
  const { home, project, book } = new TestBook();
  symlinkSync(join(project, 'bin'), join(home, 'out/link'));
  mkdirSync(join(home, 'out/bin'));
  // By a link of the session's own, which it may turn.
  symlinkSync('/usr/bin', join(project, 'turned'));
  symlinkSync('../p/../p/turned', join(home, 'out/by'));
  const searched = [
    join(project, 'node_modules/.bin'),
    join(home, 'out/link'),
    join(home, 'out/by'),
    join(home, 'out/bin'),
    '',
    '.',
    'bin',
    '/private/tmp/x',
    '/usr/bin',
  ];
  expect(closedFolders(searched.join(':'), book.ruleset)).toEqual([join(home, 'out/bin'), '/usr/bin']);
});

it.each<[string[], RegExp | undefined]>([
  [['pass', 'show'], undefined],
  [['/usr/bin/pass'], undefined],
  [['./tool'], /its path is not absolute$/],
  [['tools/tool'], /its path is not absolute$/],
  [['PROJECT/tool'], /the session may write to it$/],
  [['HOME/out/led'], /the session may write to it$/],
])('the command %j of a policy', ([program = '', ...args], refused) => {
  const { home, project, book } = new TestBook();
  symlinkSync(join(project, 'tool'), join(home, 'out/led'));
  const command = [program.replace('PROJECT', project).replace('HOME', home), ...args];
  const given = () => commandOutside(command, { PATH: `${project}:/usr/bin`, A: 'x' }, book.ruleset);
  if (refused === undefined) expect(given()).toEqual({ PATH: '/usr/bin', A: 'x' });
  else expect(given).toThrow(refused);
});

const onLinux = process.platform === 'linux' ? it : it.skip;

onLinux.each(['tool', './tool', 'PROJECT/tool'])(
  'a credential’s command (%s) that a session has made is not run outside',
  async (said) => {
    const policy = (project: string): Record<string, unknown> => ({
      network: { allow: ['key.example.com'] },
      credentials: [
        {
          name: 'key',
          hosts: ['key.example.com'],
          way: 'endpoint',
          endpointVariable: 'KEY_URL',
          from: { command: [said.replace('PROJECT', project)] },
        },
      ],
    });
    const session = new TestSession(policy(''));
    session.place('key.example.com', 443, 1);
    writeFileSync(join(session.nd7Home, 'policy.jsonc'), JSON.stringify({ nd7: 1, ...policy(session.project) }));
    session.environment['PATH'] = `${session.project}:${session.environment['PATH'] ?? '/usr/bin:/bin'}`;
    const ran = join(session.project, 'ran');
    const script = `printf '#!/bin/sh\\necho key; : > ${ran}\\n' > tool; chmod +x tool; curl -sS "$KEY_URL/"`;
    const { stdout } = await session.run(['sh', '-c', script]);
    session.close();
    expect([stdout, existsSync(ran)]).toEqual([expect.stringContaining('could not be read outside'), false]);
  },
);
