// A team's policy as a machine fetches it, from a server that holds its answers back: what was learnt meanwhile stays.
import { fromHex, utf8 } from '@nd7/entry';
import { formatTeamPolicy } from '@nd7/receipt';
import { generateKeyPair, sha256Hex, systemClock, systemRandom } from '@nd7/signing';
import { formatVkey, signNote } from '@nd7/tlog';
import { tryLock } from '@nd7/kernel';
import { closeSync, copyFileSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isShipError, offeredTeamPolicy, pullTeamPolicy, readTeamPolicy, readVaultFile } from './index.js';
import { writeVaultFile } from './vault-file.js';

const ORIGIN = 'vault.test/acme';
const [key, signer] = [generateKeyPair(), generateKeyPair()];
let home: string;
let server: Server;
let asked: ServerResponse[];
let heard: () => void;

beforeEach(async () => {
  [home, asked, heard] = [mkdtempSync(join(tmpdir(), 'nd7-team-')), [], () => undefined];
  server = createServer((_request, answer) => {
    asked.push(answer);
    heard();
  });
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  enrolled({});
});
afterEach(async () => {
  server.closeAllConnections();
  await new Promise((done) => server.close(done));
  rmSync(home, { recursive: true });
});

function enrolled(more: { teamPolicy?: number; teamPolicyHash?: string; token?: string }): void {
  const { port } = server.address() as AddressInfo;
  const vkey = formatVkey(ORIGIN, 1, fromHex(key.publicKey) as Uint8Array);
  const url = `http://127.0.0.1:${String(port)}`;
  const of = { url, team: 'acme', origin: ORIGIN, vkey, machine: signer.publicKey, policy: 'quorum none\n' };
  writeVaultFile(home, { token: 'nd7m1_x', ...of, ...more });
}

const pull = () => pullTeamPolicy({ home, signer, clock: systemClock, random: systemRandom });

/** A pull that has been sent and waits for its answer. */
async function begun(): Promise<{ ended: ReturnType<typeof pull>; answer: ServerResponse }> {
  const arrived = new Promise<void>((done) => (heard = done));
  const ended = pull();
  ended.catch(() => undefined);
  await arrived;
  return { ended, answer: asked.at(-1) as ServerResponse };
}

async function give(answer: ServerResponse, version: number, origin = ORIGIN, name = 'v'): Promise<void> {
  const policy = `{"nd7": 1, "network": {"deny": ["${name}${String(version)}.example"]}}`;
  const text = formatTeamPolicy({ origin, version, policySha256: sha256Hex(utf8(policy)) });
  const note = await signNote(text, origin, key);
  answer.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ version, note, policy }));
}

const refusal = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => 'taken',
    (error: unknown) => (isShipError(error) ? error.code : error),
  );

it('is not put back by an answer that was held back while a newer one came', async () => {
  const [late, early] = [await begun(), await begun()];
  await give(early.answer, 2);
  expect(await early.ended).toEqual({ version: 2, changed: true });
  await give(late.answer, 1);
  expect(await refusal(late.ended)).toBe('bad-policy');
  expect([readTeamPolicy(home)?.version, readVaultFile(home)?.teamPolicy]).toEqual([2, 2]);
});

it('does not undo what was enrolled while the vault answered', async () => {
  const { ended, answer } = await begun();
  enrolled({ token: 'nd7m1_new' });
  await give(answer, 1);
  await ended;
  expect(readVaultFile(home)).toMatchObject({ token: 'nd7m1_new', teamPolicy: 1 });
});

it('of another team of the same key is none', async () => {
  const { ended, answer } = await begun();
  await give(answer, 1, 'vault.test/other');
  expect(await refusal(ended)).toBe('bad-policy');
  expect(readTeamPolicy(home)).toBeUndefined();
});

it('is refused where the vault has signed another one of the same version, which is kept as evidence; a newer one ends that', async () => {
  const first = await begun();
  await give(first.answer, 2);
  await first.ended;
  const kept = readTeamPolicy(home)?.policy;
  // As an nd7 left it that kept no digest: what it kept counts.
  const { teamPolicyHash, ...earlier } = readVaultFile(home) ?? {};
  writeVaultFile(home, earlier as Parameters<typeof writeVaultFile>[1]);
  for (const vault of [earlier, { ...earlier, teamPolicyHash }]) {
    writeVaultFile(home, vault as Parameters<typeof writeVaultFile>[1]);
    const other = await begun();
    await give(other.answer, 2, ORIGIN, 'other');
    expect(await refusal(other.ended)).toBe('two-policies');
    expect(readTeamPolicy(home)?.policy).toBe(kept);
    expect(readFileSync(join(home, 'team-policy.other.json'), 'utf8')).toContain('other2.example');
  }
  // Nobody can put the other one in its place by hand.
  copyFileSync(join(home, 'team-policy.other.json'), join(home, 'team-policy.json'));
  expect(await refusal(Promise.resolve().then(() => readTeamPolicy(home)))).toBe('two-policies');
  const newer = await begun();
  await give(newer.answer, 3);
  expect(await newer.ended).toEqual({ version: 3, changed: true });
  expect(readTeamPolicy(home)?.version).toBe(3);
});

it('is looked at without being kept', async () => {
  const arrived = new Promise<void>((done) => (heard = done));
  const ended = offeredTeamPolicy({ home, signer, clock: systemClock, random: systemRandom });
  await arrived;
  await give(asked.at(-1) as ServerResponse, 4);
  expect([await ended, readTeamPolicy(home), readVaultFile(home)?.teamPolicy]).toEqual([4, undefined, undefined]);
});

it('is written by one at a time', async () => {
  const lock = openSync(join(home, 'team-policy.lock'), 'w');
  expect(tryLock(lock)).toBe(true);
  const { ended, answer } = await begun();
  await give(answer, 1);
  await new Promise((done) => setTimeout(done, 100));
  expect(readTeamPolicy(home)).toBeUndefined();
  closeSync(lock);
  expect(await ended).toEqual({ version: 1, changed: true });
});
