import { checkReceiptItself } from '@nd7/receipt';
import { loadKeyFile, systemClock, systemRandom, verifySignatures } from '@nd7/signing';
import { VaultDouble } from '@nd7/testing';
import { parseVkey } from '@nd7/tlog';
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { enrol, nameHash, readVaultFile, ShipError, VaultError, type EnrolOptions } from './index.js';
import { vaultUrl } from './enrol.js';
import { writeVaultFile } from './vault-file.js';

let vault: VaultDouble;
let home: string;

beforeEach(async () => {
  vault = await VaultDouble.start();
  home = mkdtempSync(join(tmpdir(), 'nd7-enrol-'));
});
afterEach(async () => {
  await vault.stop();
  rmSync(home, { recursive: true });
});

const options = (more: Partial<EnrolOptions> = {}): EnrolOptions => ({
  url: vault.url,
  token: vault.enrolmentToken(),
  name: 'Ada’s laptop',
  home,
  clock: systemClock,
  random: systemRandom,
  receiptWaitMs: 0,
  sleep: () => Promise.resolve(),
  ...more,
});

async function failure(work: Promise<unknown>): Promise<ShipError | VaultError> {
  const outcome = await work.catch((error: unknown) => error);
  if (outcome instanceof ShipError || outcome instanceof VaultError) return outcome;
  throw new Error(`expected a refusal, got ${JSON.stringify(outcome)} ${String(outcome)}`);
}

test('makes the machine key, pins the vault, keeps a verified receipt', async () => {
  const { vault: file, receipt } = await enrol(options());
  expect(file).toMatchObject({
    url: vault.url,
    team: 'acme',
    origin: 'vault.test/acme',
    vkey: vault.vkey,
    policy: 'quorum none\n',
  });
  expect(loadKeyFile(join(home, 'keys', 'machine.key')).publicKey).toBe(file.machine);
  expect(readVaultFile(home)).toEqual(file);
  expect(statSync(join(home, 'vault.json')).mode & 0o777).toBe(0o600);
  const verdict = await checkReceiptItself(receipt ?? '', { keys: [parseVkey(vault.vkey)!] }, verifySignatures, {
    anyType: true,
  });
  expect(verdict).toMatchObject({ ok: true, receipt: { statement: { type: 'enrol', machine: file.machine } } });
  expect(readFileSync(join(home, 'enrolment.tlog-proof'), 'utf8')).toBe(receipt);
  // The name stands nowhere in the log.
  for (const leaf of vault.log.leaves) expect(new TextDecoder().decode(leaf)).not.toContain('Ada');
});

test('a vault that shows another key than the token says is shown nothing', async () => {
  const token = vault.enrolmentToken();
  const stranger = await VaultDouble.start();
  try {
    vault.faults.otherVkey = stranger.vkey;
    const error = await failure(enrol(options({ token })));
    expect(error).toMatchObject({ code: 'wrong-vault' });
    expect(error.message).toMatch(/was not sent/);
    expect(existsSync(join(home, 'vault.json'))).toBe(false);
    expect(existsSync(join(home, 'keys'))).toBe(false);
    // Nothing was used up.
    delete vault.faults.otherVkey;
    await enrol(options({ token }));
  } finally {
    await stranger.stop();
  }
});

test('a token is used once, and one of another vault is unknown', async () => {
  const token = vault.enrolmentToken();
  await enrol(options({ token }));
  expect(await failure(enrol(options({ token, replace: true })))).toMatchObject({ code: 'bad-enrolment' });
  const stranger = await VaultDouble.start();
  expect(await failure(enrol(options({ token: stranger.enrolmentToken(), replace: true })))).toMatchObject({
    code: 'bad-enrolment',
  });
  await stranger.stop();
});

test('an enrolled machine is not enrolled anew by accident; its key stays', async () => {
  const { vault: first } = await enrol(options());
  expect(await failure(enrol(options()))).toMatchObject({ code: 'enrolled' });
  const { vault: second } = await enrol(options({ replace: true }));
  expect(second.machine).toBe(first.machine);
  expect(second.token).not.toBe(first.token);
});

test('a machine that is enrolled anew at the same log takes no older policy of the team than it has seen; at another any', async () => {
  const { vault: first } = await enrol(options());
  writeVaultFile(home, { ...first, teamPolicy: 3 });
  expect((await enrol(options({ replace: true }))).vault.teamPolicy).toBe(3);
  expect(readVaultFile(home)?.teamPolicy).toBe(3);
  const other = await VaultDouble.start();
  try {
    const { vault: second } = await enrol(options({ replace: true, url: other.url, token: other.enrolmentToken() }));
    expect([second.vkey === first.vkey, second.teamPolicy]).toEqual([false, undefined]);
  } finally {
    await other.stop();
  }
});

test.each(['', 'nd7e1_x', 'nd7m1_abc', `nd7e1_${'a'.repeat(43)}_${'A'.repeat(64)}`])(
  '%j is no token',
  async (token) => {
    expect(await failure(enrol(options({ token })))).toMatchObject({ code: 'bad-token' });
  },
);

test('a receipt that is not published in time does not stand in the way', async () => {
  vault.faults.hold = true;
  const { receipt } = await enrol(options());
  expect(receipt).toBeUndefined();
  expect(readVaultFile(home)?.team).toBe('acme');
});

test.each(['wrongKey', 'badSignature', 'garbage'] as const)(
  'an enrolment receipt by a liar (%s) is told',
  async (fault) => {
    vault.faults[fault] = true;
    expect(await failure(enrol(options()))).toMatchObject({ code: 'bad-receipt' });
  },
);

test('a receipt for something else is told', async () => {
  await enrol(options());
  vault.faults.otherReceipt = 0;
  const other = mkdtempSync(join(tmpdir(), 'nd7-enrol-'));
  expect(await failure(enrol(options({ home: other })))).toMatchObject({
    code: 'bad-receipt',
    at: { reason: 'receipt-mismatch' },
  });
  rmSync(other, { recursive: true });
});

test('an address is https, or http on this machine', () => {
  for (const good of [
    'https://vault.example',
    'https://vault.example:8443/base',
    'http://127.0.0.1:1234',
    'http://localhost',
    'http://[::1]:80',
  ]) {
    expect(() => vaultUrl(good, false)).not.toThrow();
  }
  expect(vaultUrl('https://vault.example/', false)).toBe('https://vault.example');
  for (const bad of [
    '',
    'vault.example',
    'ftp://vault.example',
    'http://vault.example',
    'http://127.0.0.1.example',
    'https://user:pw@vault.example',
    'https://v/?q',
    'https://v/#x',
  ]) {
    expect(() => vaultUrl(bad, false)).toThrow(ShipError);
  }
  expect(vaultUrl('http://vault.example', true)).toBe('http://vault.example');
});

test('a name is committed to, not told', () => {
  expect(nameHash('a'.repeat(43), 'laptop')).toMatch(/^[0-9a-f]{64}$/);
  expect(nameHash('a'.repeat(43), 'laptop')).not.toBe(nameHash('b'.repeat(43), 'laptop'));
});

test('a vault file that is none says what to do', async () => {
  expect(readVaultFile(home)).toBeUndefined();
  const { vault: good } = await enrol(options());
  const path = join(home, 'vault.json');
  for (const text of [
    '',
    '{',
    'null',
    '[]',
    '{}',
    JSON.stringify({ ...good, vkey: 'x' }),
    JSON.stringify({ ...good, policy: 'quorum' }),
    JSON.stringify({ ...good, url: 5 }),
    JSON.stringify({ ...good, origin: 'X' }),
  ]) {
    writeFileSync(path, text);
    expect(() => readVaultFile(home)).toThrow(/vault\.json .*enrol this machine again/);
  }
});

test('a machine key that others can read is refused before anything is sent', async () => {
  await enrol(options());
  chmodSync(join(home, 'keys', 'machine.key'), 0o644);
  await expect(enrol(options({ replace: true }))).rejects.toMatchObject({ code: 'permissions' });
});
