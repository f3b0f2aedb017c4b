// What the recorder does about the team's policy: fetched beside heartbeats, told once, and an alarm where a vault has signed two of one version.
import { fromHex, utf8 } from '@nd7/entry';
import { formatTeamPolicy } from '@nd7/receipt';
import { writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { generateKeyPair, sha256Hex, systemClock, systemRandom } from '@nd7/signing';
import { formatVkey, signNote } from '@nd7/tlog';
import { removeThrowAways, throwAway, until } from '../testing/recorder.fixture.js';
import { TeamPolicyWatch } from './team-policy.js';

const ORIGIN = 'vault.test/acme';
const [key, signer] = [generateKeyPair(), generateKeyPair()];
let server: Server;
let answer: string;
let asked = 0;

async function signed(version: number, name: string): Promise<string> {
  const policy = `{"nd7": 1, "network": {"deny": ["${name}.example"]}}`;
  const text = formatTeamPolicy({ origin: ORIGIN, version, policySha256: sha256Hex(utf8(policy)) });
  return JSON.stringify({ version, note: await signNote(text, ORIGIN, key), policy });
}

beforeEach(async () => {
  server = createServer((_request, response) => {
    asked += 1;
    response.writeHead(200, { 'content-type': 'application/json' }).end(answer);
  });
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
});
afterEach(async () => {
  server.closeAllConnections();
  await new Promise((done) => server.close(done));
  removeThrowAways();
});

it('a newer one is told once; two of one version are told once, and an alarm as soon as a session is open', async () => {
  const home = throwAway();
  const { port } = server.address() as AddressInfo;
  const vkey = formatVkey(ORIGIN, 1, fromHex(key.publicKey) as Uint8Array);
  const at = { url: `http://127.0.0.1:${String(port)}`, team: 'acme', origin: ORIGIN, policy: 'quorum none\n' };
  writeFileSync(join(home, 'vault.json'), JSON.stringify({ ...at, vkey, machine: signer.publicKey, token: 'nd7m1_x' }));
  const lines: string[] = [];
  const alarms: unknown[] = [];
  let isOpen = false;
  const told = {
    warn: (line: string) => void lines.push(line),
    alarm: (data: Record<string, unknown>) => {
      if (isOpen) alarms.push(data['reason']);
      return Promise.resolve(isOpen);
    },
  };
  const watch = new TeamPolicyWatch({ home, signer, clock: systemClock, random: systemRandom }, told, 0);
  const look = async (): Promise<void> => {
    const before = asked;
    watch.look();
    await until('it was fetched', () => asked > before);
    await new Promise((done) => setTimeout(done, 150));
  };
  answer = await signed(1, 'one');
  await look();
  await look();
  expect(lines).toEqual(['version 1 of the team’s policy holds from the next session on']);
  answer = await signed(1, 'other');
  await look();
  expect([lines.length, lines[1], alarms]).toEqual([2, expect.stringContaining('two policies of version 1'), []]);
  isOpen = true;
  await look();
  await look();
  expect([lines.length, alarms]).toEqual([2, ['two-policies']]);
});
