// What enrol, ship, receipt and export say to a person who gets it wrong, or whose vault does: what, where, the next step; one object with --json; exit 1 or 2.
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { generateKeyPair } from '@nd7/signing';
import { Desk } from './desk.fixture.js';
import { freePort, RealVault } from './real-vault.fixture.js';

let vault: RealVault;
let desk: Desk;
let website: Server;
let site: string;
beforeAll(async () => {
  vault = await RealVault.start();
  desk = new Desk();
  website = createServer((_, response) => response.writeHead(404, { 'content-type': 'text/html' }).end('<h1>Not here'));
  await new Promise<void>((resolve) => website.listen(0, '127.0.0.1', resolve));
  site = `http://127.0.0.1:${(website.address() as AddressInfo).port}`;
});
afterAll(async () => {
  await desk.remove();
  website.close();
  await vault.stop();
});

/** Runs a command twice, for a person and with --json, and holds both against each other; returns all that was said. */
async function wrong(args: string[], expected: { exit: number; code: string }): Promise<string> {
  const plain = await desk.nd7(args);
  const { exit, error } = await desk.json(...args);
  const { code, message, hint } = error as { code: string; message: string; hint?: string };
  expect({ exit, code, plain: plain.code }).toEqual({ exit: expected.exit, code: expected.code, plain: expected.exit });
  expect(plain.stdout).toBe('');
  expect(plain.stderr).toBe(`nd7: ${message}\n${hint === undefined ? '' : `     ${hint}\n`}`);
  const said = `${message}\n${hint ?? ''}`;
  expect(said).not.toMatch(/\n\s+at |undefined|\[object|Zod|Error:/);
  if (process.env['ND7_TEST_SHOW']) console.log(`${args.join(' ')}\n${plain.stderr}`);
  return said;
}

it('enrol: an address or a token that is none, somebody else’s, or used', async () => {
  const token = await vault.enrolmentToken();
  expect(await wrong(['enrol', 'vault.example', token], { exit: 2, code: 'insecure-url' })).toContain(
    'https://vault.example',
  );
  expect(await wrong(['enrol', 'http://vault.example', token], { exit: 2, code: 'insecure-url' })).toContain(
    '--insecure',
  );
  expect(await wrong(['enrol', vault.url, 'nd7e1_abc'], { exit: 2, code: 'bad-token' })).toContain('nd7e1_');
  expect(await wrong(['enrol', vault.url, token, '--name', ''], { exit: 2, code: 'bad-name' })).toContain('name');
  expect(await wrong(['enrol', vault.url, token, '--name', 'x'.repeat(300)], { exit: 2, code: 'bad-name' })).toContain(
    'name',
  );
  const nobody = `http://127.0.0.1:${await freePort()}`;
  const away = await wrong(['enrol', nobody, token], { exit: 1, code: 'unreachable' });
  expect(away).toContain(nobody);
  expect(away).toContain('does the vault run');
  expect(await wrong(['enrol', site, token], { exit: 1, code: 'bad-answer' })).toMatch(/is it the address of a vault/i);
  const [, prefix = '', secret = '', hash = ''] = /^(nd7e1)_(.{43})_([0-9a-f]{64})$/.exec(token) ?? [];
  const other = `${prefix}_${secret}_${hash.replace(/^./, (c) => (c === '0' ? '1' : '0'))}`;
  expect(await wrong(['enrol', vault.url, other], { exit: 1, code: 'wrong-vault' })).toContain(
    'The secret was not sent',
  );
  const unknown = `${prefix}_${'A'.repeat(secret.length)}_${hash}`;
  expect(await wrong(['enrol', vault.url, unknown], { exit: 1, code: 'bad-enrolment' })).toMatch(/used.*expired.*Ask/s);
  expect(existsSync(join(desk.home, 'vault.json'))).toBe(false);

  // None of it has used the token up.
  expect(await desk.json('enrol', vault.url, token)).toMatchObject({
    exit: 0,
    origin: 'vault.test/acme',
  });
  expect(await wrong(['enrol', vault.url, token], { exit: 2, code: 'enrolled' })).toContain('--replace');
  const second = new Desk();
  try {
    expect(await second.json('enrol', vault.url, token)).toMatchObject({ exit: 1, error: { code: 'bad-enrolment' } });
  } finally {
    await second.remove();
  }
});

it('ship, receipt, export: a machine that is not enrolled, a session that is none', async () => {
  const apart = join(desk.home, 'vault.apart');
  renameSync(join(desk.home, 'vault.json'), apart);
  expect(await wrong(['ship'], { exit: 2, code: 'not-enrolled' })).toContain('nd7 enrol URL TOKEN');
  renameSync(apart, join(desk.home, 'vault.json'));
  for (const command of ['ship', 'receipt', 'export'])
    expect(await wrong([command, 'no-such'], { exit: 2, code: 'no-session' })).toContain('`nd7 init`');
  for (const command of ['receipt', 'export']) expect((await desk.nd7([command])).code).toBe(2);
});

it('ship: a vault that is away is told as queued, one that is not there any more too; then all is shipped', async () => {
  const port = await freePort();
  const file = join(desk.home, 'vault.json');
  const kept = readFileSync(file, 'utf8');
  writeFileSync(file, kept.replace(/"url": "[^"]*"/, `"url": "http://127.0.0.1:${port}"`));
  await desk.nd7(['init', '--settings', join(desk.home, '..', 'settings.json'), '--yes']);
  await desk.call('s');
  await desk.stopRecorder();
  const queued = await desk.json('ship', 's');
  expect(queued).toMatchObject({ exit: 1, sessions: [{ session: 's', state: 'offline', acknowledged: 0 }] });
  expect(JSON.stringify(queued)).toContain(`cannot reach http://127.0.0.1:${port}`);
  const shown = await desk.nd7(['ship', 's']);
  expect(shown.stdout).toMatch(/queued: cannot reach/);
  expect(await wrong(['receipt', 's'], { exit: 1, code: 'no-receipt' })).toContain('nd7 ship');
  writeFileSync(file, kept);
  expect(await desk.json('ship', 's')).toMatchObject({ exit: 0, sessions: [{ state: 'shipped' }] });
});

it('ship: a token that the vault does not know, a machine key that is another', async () => {
  const file = join(desk.home, 'vault.json');
  const kept = readFileSync(file, 'utf8');
  // Before the call: a recorder of an enrolled machine ships at once, and what is shipped is not asked about again.
  writeFileSync(file, kept.replace(/nd7m1_[A-Za-z0-9_-]{43}/, `nd7m1_${'A'.repeat(43)}`));
  await desk.call('t');
  await desk.stopRecorder();
  const failed = async () => {
    const { exit, sessions } = await desk.json('ship', 't');
    const [one] = sessions as { state: string; code: string; problem: string }[];
    expect({ exit, state: one?.state }).toEqual({ exit: 1, state: 'failed' });
    if (process.env['ND7_TEST_SHOW']) console.log(one?.problem);
    return one;
  };
  expect(await failed()).toMatchObject({
    code: 'refused',
    problem: expect.stringContaining('nd7 enrol URL TOKEN --replace') as string,
  });
  writeFileSync(file, kept);
  const key = join(desk.home, 'keys', 'machine.key');
  renameSync(key, `${key}.apart`);
  writeFileSync(key, generateKeyPair().pem(), { mode: 0o600 });
  expect(await wrong(['ship', 't'], { exit: 1, code: 'wrong-key' })).toMatch(/machine\.key.*enrolled/s);
  renameSync(`${key}.apart`, key);
  expect(await desk.json('ship', 't')).toMatchObject({ exit: 0 });
});

it('receipt: one that was changed, a count that has none, another vault’s key', async () => {
  const folder = join(desk.home, 'sessions', 's', 'receipts');
  expect((await desk.nd7(['receipt', 's'])).code).toBe(0);
  const none = await wrong(['receipt', 's', '--entries', '99'], { exit: 2, code: 'usage' });
  expect(none).toMatch(/there are receipts for [0-9]/);
  const name = `${desk.receipted('s')}.tlog-proof`;
  const kept = readFileSync(join(folder, name), 'utf8');
  writeFileSync(join(folder, name), kept.replace(/^index [0-9]+$/m, 'index 99'));
  const bad = await desk.json('receipt', 's');
  expect(bad).toMatchObject({ exit: 1, session: 's' });
  expect(JSON.stringify(bad)).toContain('bad-inclusion');
  writeFileSync(join(folder, name), 'scribble');
  expect((await desk.nd7(['receipt', 's'])).stdout).toContain('bad-receipt');
  writeFileSync(join(folder, name), kept);
  expect((await desk.nd7(['receipt', 's', '--raw'])).stdout).toBe(kept);
});

it('export: a place that is taken, one that cannot be written, two at once; nothing half-written', async () => {
  const place = join(desk.home, '..', 'copy');
  expect((await desk.json('export', 's', '--out', place)).exit).toBe(0);
  expect(await wrong(['export', 's', '--out', place], { exit: 2, code: 'usage' })).toContain(place);
  expect(await wrong(['export', 's', '--out', place, '--tar', '-'], { exit: 2, code: 'usage' })).toContain('exclude');
  expect(await wrong(['export', 's', '--out', '/proc/nowhere/x'], { exit: 1, code: 'failed' })).toContain(
    '/proc/nowhere',
  );
  expect(await wrong(['export', 's', '--tar', join(place, 'no', 'x.tar')], { exit: 1, code: 'failed' })).toContain(
    'no/x.tar',
  );
  expect(existsSync(join(place, 'no'))).toBe(false);
});
