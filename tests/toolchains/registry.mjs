// A registry of packages that knows `greeter` 1.0.0: a module, a program `greet`, and a script that runs when it is installed.
// Prints the port of 127.0.0.1 that it listens on. A process of its own: the tests wait for jobs without serving.
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const MANIFEST = {
  name: 'greeter',
  version: '1.0.0',
  bin: { greet: './greet.js' },
  scripts: { install: "node -e \"fs.writeFileSync('built', 'built by its install script\\n')\"" },
};
const FILES = {
  'package.json': JSON.stringify(MANIFEST),
  'index.js': "exports.greet = (who) => 'hello ' + who;\n",
  'greet.js': "#!/usr/bin/env node\nconsole.log(require('.').greet(process.argv[2]));\n",
};

function packed() {
  const scratch = mkdtempSync(join(tmpdir(), 'nd7-greeter-'));
  mkdirSync(join(scratch, 'package'));
  for (const [name, text] of Object.entries(FILES))
    writeFileSync(join(scratch, 'package', name), text, { mode: 0o755 });
  const { stdout } = spawnSync('tar', ['-C', scratch, '-cz', 'package']);
  rmSync(scratch, { recursive: true });
  return stdout;
}

const tarball = packed();
const integrity = `sha512-${createHash('sha512').update(tarball).digest('base64')}`;
const server = createServer((asked, answer) => {
  if (asked.url === '/greeter/-/greeter-1.0.0.tgz') return answer.end(tarball);
  if (asked.url !== '/greeter') return answer.writeHead(404).end('{}');
  const dist = { tarball: `http://${asked.headers.host}/greeter/-/greeter-1.0.0.tgz`, integrity };
  const versions = { '1.0.0': { ...MANIFEST, hasInstallScript: true, dist } };
  answer.setHeader('content-type', 'application/json');
  return answer.end(JSON.stringify({ name: 'greeter', 'dist-tags': { latest: '1.0.0' }, versions }));
});
// A text: a number is printed in colour where colour is asked for.
server.listen(0, '127.0.0.1', () => console.log(String(server.address().port)));
