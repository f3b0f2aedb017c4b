import { generateKeyPair, systemRandom } from '@nd7/signing';
import { SessionDouble, VaultDouble } from '@nd7/testing';
import { spawn } from 'node:child_process';
import { chmodSync, existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** A process that ships a log file until all is acknowledged; it keeps nothing but what is on the disk. */
const CHILD = `
import { readFileSync } from 'node:fs';
import { Shipper, VaultClient } from ${JSON.stringify(import.meta.resolve('@nd7/ship'))};
import { parsePem, systemClock, systemRandom } from ${JSON.stringify(import.meta.resolve('@nd7/signing'))};
import { parseVkey } from ${JSON.stringify(import.meta.resolve('@nd7/tlog'))};
const { home, url, vkey, origin, token } = JSON.parse(process.argv[1]);
const signer = parsePem(readFileSync(home + '/machine.key', 'utf8'));
const lines = readFileSync(home + '/log.jsonl', 'utf8').split('\\n').slice(0, -1).map((line) => Buffer.from(line + '\\n'));
const client = new VaultClient({ url, access: { machine: signer.publicKey, token, signer }, clock: systemClock, random: systemRandom });
const shipper = new Shipper({
  source: { session: 's-1', entries: () => lines.length, range: (a, b) => Buffer.concat(lines.slice(a, b)), seal: async () => undefined },
  client, signer, origin, trust: { keys: [parseVkey(vkey)] }, outbox: home + '/outbox', receipts: home + '/receipts', clock: systemClock, random: systemRandom,
  onEvent: (event) => process.stdout.write(event.type + ' '),
});
const report = await shipper.ship();
process.exit(report.state === 'shipped' && report.alarms.length === 0 ? 0 : 3);
`;

test('kill -9 at any moment loses nothing, and no segment becomes two leaves', async () => {
  const machine = generateKeyPair();
  const vault = await VaultDouble.start();
  const home = mkdtempSync(join(tmpdir(), 'nd7-kill-'));
  try {
    const log = new SessionDouble(machine, 's-1');
    await log.seal();
    // A thousand entries to a segment: five of them.
    for (let i = 0; i < 25; i++) await log.prompts(199).seal();
    writeFileSync(join(home, 'log.jsonl'), log.range(0, log.entries()));
    writeFileSync(join(home, 'machine.key'), machine.pem());
    chmodSync(join(home, 'machine.key'), 0o600);
    const argument = JSON.stringify({
      home,
      url: vault.url,
      vkey: vault.vkey,
      origin: vault.log.origin,
      token: vault.addMachine(machine.publicKey),
    });

    /** Runs until it ends, or is killed as soon as it has said so many words. */
    const run = (words: number): Promise<number | null> =>
      new Promise((resolve, reject) => {
        const child = spawn(process.execPath, ['--input-type=module', '-e', CHILD, argument], {
          stdio: ['ignore', 'pipe', 'inherit'],
        });
        let said = 0;
        child.stdout.on('data', (chunk: Buffer) => {
          said += chunk.toString().split(' ').length - 1;
          // Some kills come with the word, some a little after it: while the answer is on its way, or the receipt on its way to the disk.
          if (said >= words) setTimeout(() => child.kill('SIGKILL'), (systemRandom(1)[0] ?? 0) % 40);
        });
        child.on('error', reject);
        child.on('close', resolve);
      });

    for (let kill = 0; kill < 5; kill++) await run(1 + (kill % 2));
    expect(await run(Infinity)).toBe(0);

    await vault.checkAll();
    expect(Buffer.from(vault.bytes(machine.publicKey, 's-1')).equals(Buffer.from(log.range(0, log.entries())))).toBe(
      true,
    );
    const leaves = vault.log.leaves
      .map((leaf) => /^nd7\/head\/v1\n[^]*^entries ([0-9]+ [0-9]+)$/m.exec(new TextDecoder().decode(leaf))?.[1])
      .filter(Boolean);
    expect(new Set(leaves).size).toBe(leaves.length);
    expect(existsSync(join(home, 'outbox')) ? readdirSync(join(home, 'outbox')) : []).toEqual([]);
    const receipts = readdirSync(join(home, 'receipts')).filter((name) => /^[0-9]+\.tlog-proof$/.test(name));
    expect(receipts.length).toBe(leaves.length);
  } finally {
    await vault.stop();
    rmSync(home, { recursive: true });
  }
}, 120_000);
