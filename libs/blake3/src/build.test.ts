import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

test('the committed kernel is what its sources compile to, byte for byte', () => {
  const build = fileURLToPath(new URL('../kernel/build.mjs', import.meta.url));
  const output = execFileSync(process.execPath, [build, '--check'], {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  expect(output).toMatch(/bytes of WebAssembly/);
}, 300_000);
