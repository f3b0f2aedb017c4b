import { toBase64, utf8 } from '@nd7/entry';
import { claimMessage, encodeClaimHeaders, signRequest, type SignedClaim } from '@nd7/segment';
import { generateKeyPair, sha256Hex, systemClock, systemRandom } from '@nd7/signing';
import { formatCheckpoint, signNote } from '@nd7/tlog';
import { SessionDouble } from './session-double.js';
import { VaultDouble } from './vault-double.js';

const machine = generateKeyPair();
let vault: VaultDouble;
let token: string;
let log: SessionDouble;

beforeEach(async () => {
  vault = await VaultDouble.start();
  token = vault.addMachine(machine.publicKey);
  log = new SessionDouble(machine, 's-1');
  await log.prompts(2).seal();
});
afterEach(() => vault.stop());

/** Ships by hand, so that what a client would never send can be sent. */
async function put(
  from: number,
  to: number,
  more: { body?: Uint8Array; prev?: string; encoding?: string } = {},
): Promise<[number, string | undefined]> {
  const links = log.lines.map((line) => /"prev":"([0-9a-f]{64})"/.exec(new TextDecoder().decode(line))?.[1] ?? '');
  const unsigned = {
    origin: vault.log.origin,
    machine: machine.publicKey,
    session: 's-1',
    from,
    to,
    prev: more.prev ?? links[from] ?? '',
    head: links[to] ?? log.head,
  };
  const claim: SignedClaim = { ...unsigned, signature: toBase64(machine.sign(claimMessage(unsigned))) };
  const path = `/v1/sessions/s-1/segments/${String(from)}`;
  const body = new Uint8Array(more.body ?? log.range(from, to));
  const signed = await signRequest(
    {
      method: 'PUT',
      pathWithQuery: path,
      bodySha256Hex: sha256Hex(body),
      now: systemClock.now(),
      nonce: systemRandom(16),
    },
    machine,
  );
  const headers = {
    ...encodeClaimHeaders(claim),
    ...signed,
    authorization: `Bearer ${token}`,
    ...(more.encoding && { 'content-encoding': more.encoding }),
  };
  const answer = await fetch(vault.url + path, { method: 'PUT', headers, body });
  return [answer.status, answer.status < 300 ? undefined : ((await answer.json()) as { code: string }).code];
}

test('takes what is right once, and refuses each thing that is not', async () => {
  expect(await put(0, 3, { body: log.range(0, 4) })).toEqual([422, 'bad-claim']);
  expect(await put(0, 4, { body: log.range(0, 3) })).toEqual([422, 'truncated']);
  expect(await put(0, 4, { body: log.range(0, 4).map((byte, i) => (i === 200 ? byte ^ 1 : byte)) })).toEqual([
    422,
    expect.any(String),
  ]);
  expect(await put(0, 3, { body: log.range(0, 3) })).toEqual([422, 'unsealed']);
  expect(await put(0, 4, { encoding: 'gzip' })).toEqual([400, 'bad-encoding']);
  // A frame that does not say its size, as encoders that stream make them.
  expect(await put(0, 4, { encoding: 'zstd', body: Uint8Array.of(0x28, 0xb5, 0x2f, 0xfd, 0, 0x58, 1, 0, 0) })).toEqual([
    400,
    'bad-frame',
  ]);
  expect(await put(0, 4)).toEqual([201, undefined]);
  expect(await put(0, 4)).toEqual([200, undefined]);
  await log.prompts(1).seal();
  await log.prompts(1).seal();
  expect(await put(6, 8)).toEqual([409, 'gap']);
  expect(await put(0, 6)).toEqual([409, 'overlap']);
  expect(await put(4, 6)).toEqual([201, undefined]);
  expect(await put(6, 8, { prev: '0'.repeat(64) })).toEqual([409, 'fork']);
  expect(vault.forks.length).toBe(1);
  expect(await put(6, 8)).toEqual([409, 'fork']);
  await vault.checkAll();
});

test('checkAll finds what is wrong', async () => {
  await put(0, 4);
  await vault.checkAll();
  const [leaf] = vault.log.leaves as [Uint8Array];
  // One digit of the time at which it was received.
  const digit = new TextDecoder().decode(leaf).indexOf('Z\nsignature') - 1;
  leaf[digit]! ^= 1;
  await expect(vault.checkAll()).rejects.toThrow(/does not hold/);
  leaf[digit]! ^= 1;
  await vault.checkAll();
  const text = formatCheckpoint({ origin: vault.log.origin, size: 1, root: utf8('x'.repeat(32)) });
  vault.log.checkpoints.push({ size: 1, note: await signNote(text, vault.log.origin, vault.log.key) });
  await expect(vault.checkAll()).rejects.toThrow(/another one/);
});

test('a request that is not signed, or signed for something else, or sent twice, is refused', async () => {
  const path = '/v1/sessions/s-1';
  const ask = async (headers: Record<string, string>): Promise<string> => {
    const answer = await fetch(vault.url + path, { headers });
    return ((await answer.json()) as { code: string }).code;
  };
  const sign = (pathWithQuery: string, now = systemClock.now()): Promise<Record<string, string>> =>
    signRequest(
      { method: 'GET', pathWithQuery, bodySha256Hex: sha256Hex(new Uint8Array(0)), now, nonce: systemRandom(16) },
      machine,
    ) as unknown as Promise<Record<string, string>>;
  const authorization = `Bearer ${token}`;
  expect(await ask({})).toBe('unauthorized');
  expect(await ask({ authorization })).toBe('bad-request-signature');
  expect(await ask({ authorization, ...(await sign('/v1/other')) })).toBe('bad-request-signature');
  expect(await ask({ authorization, ...(await sign(path, systemClock.now() - 400_000)) })).toBe('stale-request');
  const good = { authorization, ...(await sign(path)) };
  expect(await ask(good)).toBe('not-found');
  expect(await ask(good)).toBe('replayed');
});
