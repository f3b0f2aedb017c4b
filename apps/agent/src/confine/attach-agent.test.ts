// What a program is, by its file: clients as they are installed, and programs that only bear their names.
import { chmodSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { removeThrowAways, throwAway } from '../testing/recorder.fixture.js';
import { findAgent } from './attach-agent.js';

let base: string;
beforeEach(() => {
  base = throwAway();
  for (const [path, text] of Object.entries({
    'lib/node_modules/@anthropic-ai/claude-code/package.json': '{"name":"@anthropic-ai/claude-code"}',
    'lib/node_modules/@anthropic-ai/claude-code/bin/claude.exe': '\x7fELF',
    'lib/node_modules/@anthropic-ai/claude-code/cli.js': '#!/usr/bin/env node\n',
    'lib/node_modules/@anthropic-ai/claude-code-linux-x64/package.json':
      '{"name":"@anthropic-ai/claude-code-linux-x64"}',
    'lib/node_modules/@anthropic-ai/claude-code-linux-x64/claude': '\x7fELF',
    'lib/node_modules/@openai/codex/package.json': '{"name":"@openai/codex"}',
    'lib/node_modules/@openai/codex/bin/codex.js': '#!/usr/bin/env node\n',
    'share/claude/versions/2.1.332': `\x7fELF${'\0'.repeat((8 << 20) - 14)}x@anthropic-ai/claude-code\0`,
    'other/claude': '\x7fELF nothing of the kind',
    'other/codex': '#!/bin/sh\necho I am no agent\n',
    'other/tool': '\x7fELF @anthropic-ai/claude-code',
    'wrapper/claude': `#!/bin/bash\nexec "$HOME/lib/node_modules/@anthropic-ai/claude-code/cli.js" --verbose "$@"\n`,
    'wrapper/loop': `#!/bin/sh\nexec ${'BASE'}/wrapper/loop "$@"\n`,
    'wrapper/package.json': '{"name":"my-tools"}',
    'bin/node': '\x7fELF',
    'bin/npx': '#!/usr/bin/env node\n',
    'bin/npm': '#!/usr/bin/env node\n',
    'bin/env': '\x7fELF',
    'project/script.js': '',
  })) {
    mkdirSync(dirname(join(base, path)), { recursive: true });
    writeFileSync(join(base, path), text.replace('BASE', base), 'latin1');
    chmodSync(join(base, path), 0o755);
  }
  symlinkSync('../lib/node_modules/@anthropic-ai/claude-code/bin/claude.exe', join(base, 'bin/claude'));
  symlinkSync('../share/claude/versions/2.1.332', join(base, 'bin/native'));
  symlinkSync('../lib/node_modules/@openai/codex/bin/codex.js', join(base, 'bin/codex'));
  mkdirSync(join(base, 'project/node_modules/.bin'), { recursive: true });
  symlinkSync(
    join(base, 'lib/node_modules/@anthropic-ai/claude-code/cli.js'),
    join(base, 'project/node_modules/.bin/cc'),
  );
});
afterEach(removeThrowAways);

const find = (line: string) =>
  findAgent(line.replaceAll('BASE', base).split(' '), {
    cwd: join(base, 'project'),
    path: join(base, 'bin'),
    home: base,
  });

it.each([
  ['by its name on PATH', 'claude -p x', 'claude-code', 0],
  ['by a path', '../bin/claude -p x', 'claude-code', 0],
  [
    'as the platform’s own program',
    'BASE/lib/node_modules/@anthropic-ai/claude-code-linux-x64/claude',
    'claude-code',
    0,
  ],
  ['as a program of its own, by what is written in it, also across two pieces', 'native -p x', 'claude-code', 0],
  [
    'as a script that node runs',
    'node --no-warnings -r ./x.cjs BASE/lib/node_modules/@anthropic-ai/claude-code/cli.js -p',
    'claude-code',
    4,
  ],
  ['through npx, with a version', 'npx -y @anthropic-ai/claude-code@2.1.332 -p x', 'claude-code', 2],
  ['through npx, by its package', 'npx --package @anthropic-ai/claude-code claude -p x', 'claude-code', 3],
  ['through npx, as the project has it', 'npx cc -p x', 'claude-code', 1],
  ['through npx, after an option with a value', 'npx --cache /x --yes @openai/codex exec', 'codex', 4],
  ['through npm exec', 'npm exec -- @openai/codex exec x', 'codex', 3],
  ['through env', 'env -i -u X A=b claude -p x', 'claude-code', 5],
  ['through a wrapper of a shell', 'BASE/wrapper/claude -p x', 'claude-code', 0],
  ['Codex', 'codex exec x', 'codex', 0],
])('finds an agent %s', (_how, line, name, at) => {
  expect(find(line)).toEqual({ name, at });
});

it.each([
  ['another program of that name', 'BASE/other/claude'],
  ['a script of that name', 'BASE/other/codex exec'],
  ['a program that has the words in it and is called otherwise', 'BASE/other/tool'],
  ['a wrapper that goes round', 'BASE/wrapper/loop'],
  ['a script of node’s that is something else', 'node script.js claude'],
  ['text that node runs', 'node -e claude'],
  ['a package whose name only begins so', 'npx @anthropic-ai/claude-codec'],
  ['what npx takes for the value of an option', 'npx --no claude -p x'],
  ['a command of npm’s that takes the agent’s options for its own', 'npm exec @anthropic-ai/claude-code -p x'],
  ['what env takes for the value of an option', 'env -u claude'],
  ['text that npx runs', 'npx -c claude'],
  ['an argument that names one', 'npm exec'],
  ['what is not there', 'no-such-program'],
])('does not take %s for one', (_what, line) => {
  expect(find(line)).toBeUndefined();
});
