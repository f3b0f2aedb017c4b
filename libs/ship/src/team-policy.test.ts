// A team's policy as a machine fetches it, from a server that holds its answers back: what was learnt meanwhile stays.
import { fromHex, utf8 } from '@nd7/entry';
import { formatTeamPolicy } from '@nd7/receipt';
import { generateKeyPair, sha256Hex, systemClock, systemRandom } from '@nd7/signing';
import { formatVkey, signNote } from '@nd7/tlog';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isShipError, pullTeamPolicy, readTeamPolicy, readVaultFile } from './index.js';
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

function enrolled(more: { teamPolicy?: number; token?: string }): void {
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

async function give(answer: ServerResponse, version: number, origin = ORIGIN): Promise<void> {
  const policy = `{"nd7": 1, "network": {"deny": ["v${String(version)}.example"]}}`;
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
