// A pinned policy that asks for witnesses is kept: a receipt without their quorum does not count, whatever the vault says.
import { fromHex } from '@nd7/entry';
import { generateKeyPair, systemClock, systemRandom } from '@nd7/signing';
import { SessionDouble, VaultDouble } from '@nd7/testing';
import { formatVkey } from '@nd7/tlog';
import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ShipLoop, type ShipError } from './index.js';

const machine = generateKeyPair();
const witness = formatVkey('w1.test', 4, fromHex(generateKeyPair().publicKey) as Uint8Array);
let vault: VaultDouble;
let home: string;

beforeEach(async () => {
  vault = await VaultDouble.start();
  home = mkdtempSync(join(tmpdir(), 'nd7-quorum-'));
});
afterEach(async () => {
  await vault.stop();
  rmSync(home, { recursive: true });
});

/** Ships one sealed session under a policy; the failure, if shipping stops. */
async function ship(policy: string): Promise<ShipError | undefined> {
  const session = new SessionDouble(machine, 's');
  await session.prompts(2).seal();
  let failure: ShipError | undefined;
  const loop = new ShipLoop({
    home,
    vault: {
      url: vault.url,
      team: 'acme',
      origin: vault.log.origin,
      vkey: vault.vkey,
      machine: machine.publicKey,
      token: vault.addMachine(machine.publicKey),
      policy,
    },
    signer: machine,
    clock: systemClock,
    random: systemRandom,
    delayMs: 5,
    receiptWaitMs: 2000,
    source: () => session,
    onFailure: (_session, error) => (failure = error),
  });
  await loop.flush(['s']);
  await loop.stop();
  return failure;
}

test('under quorum none the vault’s own signature is enough', async () => {
  expect(await ship('quorum none\n')).toBeUndefined();
  expect(readdirSync(join(home, 'sessions', 's', 'receipts')).length).toBeGreaterThan(0);
});

test('under a quorum it is not: shipping stops and says so, nothing counts, the answer is kept', async () => {
  const failure = await ship(`witness w1 ${witness}\nquorum w1\n`);
  expect(failure).toMatchObject({ code: 'bad-receipt', message: expect.stringContaining('too few of the witnesses') });
  expect(existsSync(join(home, 'sessions', 's', 'receipts'))).toBe(false);
});
