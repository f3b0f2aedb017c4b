// One list of scenarios, two back ends: the vault double that the libs are tested with must do as the real vault on its PostgreSQL does.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { enrol, ShipError, ShipLoop, VaultError, type VaultClient } from '@nd7/ship';
import { generateKeyPair, systemClock, systemRandom } from '@nd7/signing';
import { SessionDouble, VaultDouble } from '@nd7/testing';
import { formatNote, formatVkey, keyId, parseNote, signatureLine } from '@nd7/tlog';
import { claimMessage } from '@nd7/segment';
import { fromHex, toBase64, utf8 } from '@nd7/entry';
import { files, Machine } from './machine.fixture.js';
import { RealVault, until, type Backend } from './real-vault.fixture.js';
import { CUT, Wayside, type Answer, type Passing } from './wayside.fixture.js';

/** The link that the entry after so many carries. */
function linkAt(log: SessionDouble, count: number): string {
  if (count === log.entries()) return log.head;
  return /"prev":"([0-9a-f]{64})"/.exec(Buffer.from(log.range(count, count + 1)).toString())?.[1] ?? '';
}

function problem(status: number, code: string): Answer {
  const document = { type: `urn:nd7:problem:${code}`, title: code, status, code, detail: 'so it is' };
  return {
    status,
    headers: { 'content-type': 'application/problem+json' },
    body: Buffer.from(JSON.stringify(document)),
  };
}

/** The receipt with its checkpoint signed, under the pinned name and key id, by a key that is not the pinned one. */
function signedByAnother(receipt: string, vkey: string): string {
  const [, origin = '', , key = ''] = /^(.*)\+([0-9a-f]{8})\+(.*)$/.exec(vkey) ?? [];
  const cut = receipt.indexOf('\n\n') + 2;
  const text = parseNote(receipt.slice(cut))?.text ?? '';
  const id = keyId(origin, 1, Buffer.from(key, 'base64').subarray(1));
  return receipt.slice(0, cut) + formatNote(text, [signatureLine(origin, id, generateKeyPair().sign(utf8(text)))]);
}

/** The receipt with its leaf at another place of the tree. */
const ofAnotherPlace = (receipt: string): string =>
  receipt.replace(/^index [0-9]+$/m, (line) => `index ${String(Number(line.slice(6)) ^ 1)}`);

const isPut = ({ method }: Passing): boolean => method === 'PUT';

describe.each([
  ['the vault double', () => VaultDouble.start()],
  ['the real vault', () => RealVault.start()],
] as [string, () => Promise<Backend>][])('%s', (_, begin) => {
  let backend: Backend;
  let way: Wayside;
  let machine: Machine;
  let turn = 0;
  beforeAll(async () => {
    backend = await begin();
    way = await Wayside.start(backend.url);
    machine = await Machine.enrol(backend, way);
  });
  beforeEach(() => {
    turn += 1;
    way.seen.length = 0;
    way.lost = 0;
    way.honest();
  });
  afterAll(async () => {
    await backend.checkAll();
    await way.down();
    machine.remove();
    await backend.stop();
  });

  /** A log under an id of its own, sealed and with so many prompts. */
  const log = async (prompts = 0): Promise<SessionDouble> => {
    const made = machine.log(`s-${turn}`);
    if (prompts > 0) await made.prompts(prompts).seal();
    return made;
  };
  const put = async (client: VaultClient, of: SessionDouble, from: number, to: number) => {
    const [prev, head] = [linkAt(of, from), linkAt(of, to)];
    const claim = {
      origin: machine.vault.origin,
      machine: machine.key.publicKey,
      session: of.session,
      from,
      to,
      prev,
      head,
    };
    const signature = toBase64(machine.key.sign(claimMessage(claim)));
    return client.putSegment({ ...claim, signature }, of.range(from, to), 'identity');
  };

  it('an answer that is lost: the same cut is sent again, byte for byte, and gets the receipt', async () => {
    const one = await log(3);
    let cut = 0;
    way.after = (passing, answer) => (isPut(passing) && cut++ === 0 ? CUT : answer);
    expect(await machine.ship(one)).toMatchObject({ state: 'shipped', alarms: [] });
    const [first, second] = way.puts;
    expect([first?.status, second?.status]).toEqual([201, 200]);
    expect(second?.body.equals(first?.body ?? Buffer.alloc(0))).toBe(true);
    expect(second?.headers['nd7-signature']).toBe(first?.headers['nd7-signature']);
    expect(second?.answer.equals(first?.answer ?? Buffer.alloc(0))).toBe(true);
    await machine.holdsAll(one);
  });

  it('a cut sent again, at once, later and after more: the same receipt, byte for byte', async () => {
    const one = await log(2);
    await machine.ship(one);
    await one.prompts(2).seal();
    await machine.ship(one);
    const kept = readFileSync(join(machine.receipts(one.session), '2.tlog-proof'), 'utf8');
    for (let again = 0; again < 3; again++) expect(await put(machine.client(), one, 0, 2)).toEqual({ receipt: kept });
    const place = machine.client().receiptPath(machine.key.publicKey, one.session, 0);
    expect(await machine.client().receipt(place)).toBe(kept);
  });

  it('an overlap that agrees, and a gap: 409 with where to go on, nothing stored', async () => {
    const one = await log(3);
    await machine.ship(one);
    const held = one.entries();
    await one.prompts(2).seal();
    await one.prompts(2).seal();
    const refusals = [
      [2, one.entries(), 'overlap'],
      [held + 3, one.entries(), 'gap'],
    ] as const;
    for (const [from, to, code] of refusals)
      await expect(put(machine.client(), one, from, to)).rejects.toMatchObject({ code, status: 409, next: held });
    expect((await machine.client().sessionStatus(one.session))?.entries).toBe(held);
    await machine.ship(one);
    await machine.holdsAll(one);
  });

  it('two shippers at once: nothing is taken twice, both end with all of it', async () => {
    const one = await log();
    for (let round = 0; round < 4; round++) {
      await one.prompts(1 + round).seal();
      // The second asks where the vault is before the first has shipped, and sends after it.
      const late = machine.shipper(one);
      let waits = true;
      way.before = async (passing) => {
        if (!isPut(passing) || !waits) return;
        waits = false;
        await machine.ship(one);
        await one.prompts(1).seal();
      };
      const report = await late.ship();
      way.honest();
      expect(report.alarms).toEqual([]);
      const both = await Promise.all([machine.ship(one), machine.ship(one)]);
      expect(both.map(({ state }) => state)).toEqual(['shipped', 'shipped']);
    }
    await machine.holdsAll(one);
  });

  it('202, and the receipt later: nothing counts before it is there', async () => {
    const one = await log(2);
    let hidden = true;
    way.after = ({ method, path }, answer): Answer => {
      if (!hidden) return answer;
      const location = `${path.replace(/^\/v1/, `/v1/machines/${machine.key.publicKey}`)}/receipt`;
      if (method === 'PUT') return { status: 202, headers: { location }, body: Buffer.alloc(0) };
      return /\/segments\/\d+\/receipt$/.test(path) ? problem(404, 'not-published') : answer;
    };
    expect(await machine.ship(one, { receiptWaitMs: 300 })).toMatchObject({ state: 'pending', acknowledged: 0 });
    expect(machine.counts(one.session)).toEqual([]);
    expect(files(machine.outbox(one.session))).toEqual(['0']);
    hidden = false;
    expect(await machine.ship(one)).toMatchObject({ state: 'shipped', alarms: [] });
    await machine.holdsAll(one);
    expect(way.puts.filter(({ path }) => path.endsWith('/0')).length).toBe(1);
  });

  it('the network goes and comes back: tried ever more seldom, nothing lost, nothing for a person to do', async () => {
    const one = await log(2);
    const loop = new ShipLoop({
      home: machine.home,
      vault: machine.vault,
      signer: machine.key,
      clock: systemClock,
      random: systemRandom,
      source: () => one,
      retry: { attempts: 1, baseMs: 20, capMs: 200 },
      delayMs: 20,
    });
    try {
      way.before = () => CUT;
      loop.notice(one.session);
      await until('it has tried again', () => way.lost >= 2);
      const status = loop.status() as { sessions: { state: string; problem?: string; failures: number }[] };
      expect(status.sessions[0]).toMatchObject({ problem: expect.stringContaining('cannot reach') as string });
      await way.down();
      await new Promise((resolve) => setTimeout(resolve, 500));
      await one.prompts(3).seal();
      loop.notice(one.session);
      way.honest();
      await way.up();
      await until('all of it is shipped', () => machine.counts(one.session).at(-1) === one.entries());
    } finally {
      await loop.stop();
    }
    await machine.holdsAll(one);
  });

  it('kill -9 of the shipper before it has sent, and before it has kept the answer: one leaf each, nothing lost', async () => {
    const one = await log(2);
    const killed = async (where: 'before' | 'after'): Promise<void> => {
      const { child, over } = machine.process(one);
      const strike = async (): Promise<void> => {
        child.kill('SIGKILL');
        await over;
      };
      if (where === 'before') way.before = async (passing) => (isPut(passing) ? (await strike(), CUT) : undefined);
      else way.after = async (passing, answer) => (isPut(passing) ? (await strike(), CUT) : answer);
      expect((await over).code).toBe(137);
      way.honest();
      expect(files(machine.outbox(one.session))).toContain('0');
      expect(machine.counts(one.session)).toEqual([]);
    };
    await killed('before');
    expect(way.puts).toEqual([]);
    await killed('after');
    expect(way.puts.map(({ status }) => status)).toEqual([201]);
    expect((await machine.process(one).over).code).toBe(0);
    await machine.holdsAll(one);
    // The vault said so itself: what it had taken was not sent again.
    expect(way.puts.filter(({ path }) => path.endsWith('/0')).length).toBe(1);
  });

  it('a disk that is full, for the cut and for the receipt: says so, loses nothing, goes on when there is room', async () => {
    const one = await log(3);
    const noRoom = await machine.process(one, 'ulimit -f 0').over;
    expect(noRoom).toMatchObject({ code: 1, output: expect.stringMatching(/"io".*outbox.*cannot be used/) as string });
    expect(way.puts).toEqual([]);
    expect(files(machine.outbox(one.session)).filter((name) => !name.endsWith('.new'))).toEqual([]);
    // A block of 512 bytes: enough for a cut, not for a receipt.
    const some = await machine.process(one, 'ulimit -f 1').over;
    expect(some).toMatchObject({ code: 1, output: expect.stringMatching(/"io".*receipts.*cannot be used/) as string });
    expect(way.puts.map(({ status }) => status)).toEqual([201]);
    expect(machine.counts(one.session)).toEqual([]);
    expect((await machine.process(one).over).code).toBe(0);
    await machine.holdsAll(one);
  });

  it('one session id on two machines: each has its own', async () => {
    const other = await Machine.enrol(backend, way);
    try {
      const [here, there] = [await log(2), other.log(`s-${turn}`)];
      await there.prompts(5).seal();
      const reports = await Promise.all([machine.ship(here), other.ship(there)]);
      expect(reports.map(({ state, alarms }) => [state, alarms.length])).toEqual([
        ['shipped', 0],
        ['shipped', 0],
      ]);
      await machine.holdsAll(here);
      await other.holdsAll(there);
      // What another machine began is nothing to go on with.
      const mixed = await machine.failure(there, {
        outbox: join(machine.home, 'x'),
        receipts: join(machine.home, 'y'),
      });
      expect(mixed.code).not.toBe('io');
    } finally {
      other.remove();
    }
  });

  describe('a vault that lies on the way', () => {
    it.each([
      ['signs with another key', 'bad-signature', signedByAnother],
      ['shows a proof that leads elsewhere', 'bad-inclusion', ofAnotherPlace],
      ['says thank you', 'bad-receipt', () => 'thank you for your entries\n'],
      ['cuts the receipt short', 'bad-receipt', (text: string) => text.slice(0, text.length / 2)],
    ])('%s: fails loudly, keeps everything, ships when it is honest', async (_does, reason, lie) => {
      const one = await log(3);
      way.after = (passing, answer) =>
        isPut(passing) ? { ...answer, body: Buffer.from(lie(answer.body.toString(), machine.vault.vkey)) } : answer;
      const error = await machine.failure(one);
      expect(error).toMatchObject({ code: 'bad-receipt', at: { session: one.session, entry: 0, reason } });
      expect(error.message).toContain('NO RECEIPT');
      expect(machine.counts(one.session)).toEqual([]);
      expect(files(machine.outbox(one.session))).toEqual(['0', '0.refused-1']);
      way.honest();
      expect(await machine.ship(one)).toMatchObject({ state: 'shipped' });
      await machine.holdsAll(one);
    });

    it('gives a good receipt for something else', async () => {
      const one = await log();
      await machine.ship(one);
      await one.prompts(2).seal();
      const kept = readFileSync(join(machine.receipts(one.session), '2.tlog-proof'));
      way.after = (passing, answer) => (isPut(passing) ? { ...answer, body: kept } : answer);
      expect(await machine.failure(one)).toMatchObject({
        code: 'bad-receipt',
        at: { entry: 2, reason: 'receipt-mismatch' },
      });
      expect(machine.counts(one.session)).toEqual([2]);
      way.honest();
      await machine.ship(one);
      await machine.holdsAll(one);
    });

    it('says it holds more than the log has, less than it signed, or another head', async () => {
      const one = await log(3);
      await machine.ship(one);
      const status =
        (change: object) =>
        (passing: Passing, answer: Answer): Answer =>
          passing.method === 'GET' && passing.path === `/v1/sessions/${one.session}` && answer.status === 200
            ? {
                ...answer,
                body: Buffer.from(JSON.stringify({ ...(JSON.parse(answer.body.toString()) as object), ...change })),
              }
            : answer;
      way.after = status({ entries: one.entries() + 4 });
      expect(await machine.failure(one)).toMatchObject({ code: 'log-behind' });
      way.after = status({ head: '0'.repeat(64) });
      expect(await machine.failure(one)).toMatchObject({ code: 'disagrees' });
      way.after = status({ entries: 2 });
      const report = await machine.ship(one);
      expect(report.alarms.map(({ code }) => code)).toEqual(['vault-behind']);
      // It was a lie: the vault had it all, and gave the receipt that it had given.
      expect(way.puts.at(-1)?.status).toBe(200);
      way.honest();
      await machine.holdsAll(one);
    });

    it('shows another key at enrolment: the secret is not sent', async () => {
      const token = await backend.enrolmentToken();
      const other = formatVkey('vault.test/acme', 1, fromHex(generateKeyPair().publicKey)!);
      way.after = (passing, answer) => {
        if (!passing.path.startsWith('/v1/enrolment/')) return answer;
        return {
          ...answer,
          body: Buffer.from(JSON.stringify({ ...(JSON.parse(answer.body.toString()) as object), vkey: other })),
        };
      };
      const home = join(machine.home, 'another');
      const options = { url: way.url, token, name: 'x', home, clock: systemClock, random: systemRandom };
      const refused = enrol(options);
      await expect(refused).rejects.toThrow(ShipError);
      await expect(refused).rejects.toMatchObject({ code: 'wrong-vault' });
      expect(way.seen.map(({ method }) => method)).toEqual(['GET']);
      expect(files(home)).toEqual([]);
      way.honest();
      expect((await enrol(options)).vault.origin).toBe(machine.vault.origin);
      await expect(enrol({ ...options, home: join(machine.home, 'a-third') })).rejects.toThrow(VaultError);
    });
  });

  it('a rewritten log: 409 fork with both claims, again and again, everything kept', async () => {
    const one = await log(4);
    await machine.ship(one);
    const forged = one.rewritten(3);
    const before = files(machine.receipts(one.session));
    for (let again = 0; again < 2; again++) {
      expect(await machine.failure(forged)).toMatchObject({ code: 'fork', at: { session: one.session } });
      expect(files(machine.receipts(one.session))).toEqual(before);
    }
    await forged.prompts(1).seal();
    expect(await machine.failure(forged)).toMatchObject({ code: 'fork' });
    expect(await machine.client().sessionStatus(one.session)).toMatchObject({ entries: one.entries(), forked: true });
    // What was shipped before the fork is still answered.
    expect(await put(machine.client(), one, 0, 2)).toHaveProperty('receipt');
  });
});
