import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Service } from './programs.js';

const root = join(import.meta.dirname, '..', '..', '..');
const vault = join(root, 'apps/vault/bin/nd7-vault.js');
let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'nd7-programs-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

/** What a service said until it ended, which is something. */
async function words(file: string, args: string[], env: NodeJS.ProcessEnv): Promise<string> {
  const service = Service.start(file, args, env, join(folder, 'log'));
  for (;;) {
    await new Promise((next) => setTimeout(next, 20));
    if (service.running || !existsSync(service.log)) continue;
    const said = readFileSync(service.log, 'utf8');
    if (said.endsWith('\n')) return said;
  }
}

describe('how a vault is started', () => {
  it('with the room that its own first line asks for, by the Node that we run on', async () => {
    mkdirSync(join(folder, 'bin'));
    writeFileSync(join(folder, 'bin/node'), '#!/bin/sh\necho another node\n', { mode: 0o755 });
    const tell = 'data:text/javascript,console.log(process.execPath,process.execArgv.join())';
    const said = await words(vault, ['--version'], {
      PATH: `${join(folder, 'bin')}:${String(process.env['PATH'])}`,
      NODE_OPTIONS: `--import=${tell}`,
    });
    expect(said.split('\n')[0]).toBe(`${process.execPath} --initial-old-space-size=256,--max-semi-space-size=32`);
  });

  it('by the systemd unit and the container too, which execute the same file', () => {
    const unit = readFileSync(join(root, 'infra/systemd/nd7-vault.service'), 'utf8');
    const container = readFileSync(join(root, 'infra/container/vault.Dockerfile'), 'utf8');
    expect(unit).toContain('\nExecStart=/opt/nd7/apps/vault/bin/nd7-vault.js serve\n');
    expect(container).toContain('\nENTRYPOINT ["/app/apps/vault/bin/nd7-vault.js"]\n');
  });

  it('or its log says why it could not be', async () => {
    writeFileSync(join(folder, 'bare.js'), '', { mode: 0o644 });
    expect(await words(join(folder, 'bare.js'), [], {})).toMatch(/bare\.js EACCES/);
  });
});
