import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { testDatabase } from '@nd7/testing';
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { runCli } from './program.js';

const bin = join(import.meta.dirname, '../../bin/nd7-vault.js');
let env: NodeJS.ProcessEnv;
let folder: string;

interface Ran {
  code: number;
  out: string;
  err: string;
}

/** Runs a command line in this process. */
async function run(args: string[], over: NodeJS.ProcessEnv = {}): Promise<Ran> {
  let [out, err] = ['', ''];
  const code = await runCli(args, { ...env, ...over }, { out: (text) => (out += text), err: (text) => (err += text) });
  return { code, out, err };
}

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'nd7-cli-'));
  env = {
    PATH: process.env['PATH'],
    ND7_DATABASE_URL: await testDatabase(),
    ND7_VAULT_NAME: 'vault.test',
    ND7_VAULT_KEYS: join(folder, 'keys'),
    ND7_VAULT_PORT: '0',
    ND7_DASHBOARD_DIR: join(folder, 'none'),
    ND7_LOG_LEVEL: 'info',
  };
}, 60_000);

afterAll(() => rmSync(folder, { recursive: true }));

describe('nd7-vault', () => {
  it('says what is wrong in one line each, and exits 2', async () => {
    expect(await run(['check'], { ND7_VAULT_NAME: '', ND7_VAULT_PORT: 'x' })).toEqual({
      code: 2,
      out: '',
      err: 'nd7-vault: ND7_VAULT_NAME is not set\nnd7-vault: ND7_VAULT_PORT is "x": must be a whole number from 0 to 65535\n',
    });
    const unknown = await run(['frobnicate']);
    expect([unknown.code, unknown.err]).toEqual([2, expect.stringContaining("unknown command 'frobnicate'")]);
    expect((await run(['--help'])).code).toBe(0);
    expect((await run(['--version'])).out).toMatch(/^\d+\.\d+\.\d+\n$/);
  });

  it('asks for the migrations before anything else works, then runs them once', async () => {
    for (const args of [['check'], ['team', 'create', 'acme']]) {
      const before = await run(args);
      expect([before.code, before.err]).toEqual([1, expect.stringContaining('nd7-vault migrate')]);
      expect(before.err).not.toContain('    at ');
    }
    expect((await run(['migrate'])).out).toContain('applied 0101_roles_and_guards.sql');
    expect((await run(['migrate', '--json'])).out).toBe('{"applied":[]}\n');
    expect((await run(['check'])).code).toBe(0);
  });

  it('makes teams, tokens and readers; a second time is no harm', async () => {
    const made = JSON.parse((await run(['team', 'create', 'acme', '--json'])).out) as Record<string, unknown>;
    expect(made).toMatchObject({ team: 'acme', created: true, origin: 'vault.test/acme' });
    const again = JSON.parse((await run(['team', 'create', 'acme', '--json'])).out) as Record<string, unknown>;
    expect(again).toEqual({ ...made, created: false });
    expect((await run(['team', 'list'])).out).toBe('acme\n');
    expect(
      (JSON.parse((await run(['enrolment', 'create', '--team', 'acme', '--json'])).out) as { token: string }).token,
    ).toMatch(/^nd7e1_[A-Za-z0-9_-]{43}_[0-9a-f]{64}$/);
    expect((await run(['reader', 'create', '--team', 'acme'])).out).toMatch(/^nd7r1_[A-Za-z0-9_-]{43}\n$/);
    expect(statSync(String(env['ND7_VAULT_KEYS'])).mode & 0o777).toBe(0o700);
  });

  it.each([
    [['team', 'create', 'No Team'], 2, 'a team is named by'],
    [['enrolment', 'create', '--team', 'nobody'], 1, 'there is no team "nobody"'],
    [['enrolment', 'create'], 2, '--team'],
    [['enrolment', 'create', '--team', 'acme', '--expires', 'soon'], 2, '30m, 24h or 90d'],
    [['machine', 'revoke', 'x', '--team', 'acme'], 2, '64 hex digits'],
    [['machine', 'revoke', '0'.repeat(64), '--team', 'acme'], 1, 'has no machine'],
    [['team', 'set', 'log', 'everybody', '--team', 'acme'], 2, 'public or team'],
    [['check'], 1, 'database cannot be reached', { ND7_DATABASE_URL: 'postgres://x@127.0.0.1:1/x' }],
  ] as [string[], number, string, NodeJS.ProcessEnv?][])('%j exits %i: %s', async (args, code, line, over = {}) => {
    const ran = await run(args, over);
    expect([ran.code, ran.err]).toEqual([code, expect.stringContaining(line)]);
    expect(ran.err).not.toContain('    at ');
  });

  it('serves until it is told to stop, as a program', async () => {
    const child = spawn(process.execPath, [bin, 'serve'], { env, stdio: ['ignore', 'pipe', 'pipe'] });
    const url = await new Promise<string>((done, fail) => {
      let log = '';
      child.once('exit', () => fail(new Error(`it ended: ${log}`)));
      child.stderr.on('data', (chunk: Buffer) => {
        log += chunk.toString('utf8');
        const found = /"url":"([^"]+)"/.exec(log);
        if (found?.[1] !== undefined) done(found[1]);
      });
    });
    expect((await fetch(`${url}/readyz`)).status).toBe(200);
    const ended = new Promise<number | null>((done) => child.once('exit', (code) => done(code)));
    child.kill('SIGTERM');
    expect(await ended).toBe(0);
  });
});
