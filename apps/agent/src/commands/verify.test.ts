import { execFile } from 'node:child_process';
import { appendFileSync, copyFileSync, cpSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { CliError } from '../cli/io.js';
import { capturedIo, removeFolders, throwAwayFolder } from '../testing/cli.fixture.js';
import { verify, type Verified, type VerifyOptions } from './verify.js';

const REPOSITORY = join(import.meta.dirname, '../../../..');
const VECTORS = join(REPOSITORY, 'tests/vectors');
const read = (path: string): unknown => JSON.parse(readFileSync(join(VECTORS, path), 'utf8'));

interface LogVector {
  name: string;
  session: string;
  intact: boolean;
  entries?: number;
  head?: string;
  bad_entry?: number;
  reason?: string;
  head_file?: boolean;
}
interface ReceiptVector {
  name: string;
  holds: boolean;
  reason?: string;
  vkeys?: string[];
  log?: string;
}
const edge = read('edge/index.json') as { session: string; logs: LogVector[]; receipts: ReceiptVector[] };
const receipts = read('receipts/index.json') as {
  vkey: string;
  session: string;
  log: string;
  receipts: ReceiptVector[];
};
const logs = [
  ...(read('logs/index.json') as LogVector[]).map((v) => ({ ...v, folder: join(VECTORS, 'logs') })),
  ...edge.logs.map((v) => ({ ...v, session: edge.session, folder: join(VECTORS, 'edge') })),
];
const receiptVectors = [
  ...receipts.receipts.map((v) => ({
    ...v,
    vkeys: [receipts.vkey],
    session: receipts.session,
    folder: join(VECTORS, 'receipts'),
    log: receipts.log,
  })),
  ...edge.receipts.map((v) => ({
    ...v,
    vkeys: v.vkeys ?? [],
    session: edge.session,
    folder: join(VECTORS, 'edge'),
    log: v.log ?? '',
  })),
];

afterAll(removeFolders);

const asked = (options: Partial<VerifyOptions> = {}): VerifyOptions => ({ receipt: [], vaultKey: [], ...options });

async function run(named: string | undefined, options: Partial<VerifyOptions> = {}, home = '/nonexistent/nd7') {
  const io = capturedIo({ home, isJson: true, cwd: VECTORS });
  await verify(io, named, asked(options));
  return {
    exit: io.exitCode(),
    result: io.values[0] as unknown as Verified & { sessions?: Verified[] },
    count: io.values.length,
  };
}

/** The error of a command that could not be run. */
async function refusal(
  named: string | undefined,
  options: Partial<VerifyOptions> = {},
  home = '/nonexistent/nd7',
): Promise<CliError> {
  const error: unknown = await run(named, options, home).catch((e: unknown) => e);
  if (!(error instanceof CliError)) throw new Error(`no CliError: ${String(error)}`);
  return error;
}

describe('every log vector gets its verdict', () => {
  test.each(logs.map((v) => [v.name, v] as const))('%s', async (_, v) => {
    const head = join(v.folder, `${v.name}.head.json`);
    const { result, exit, count } = await run(join(v.folder, `${v.name}.jsonl`), {
      session: v.session,
      ...(existsSync(head) && { head }),
    });
    const { verdict, entries, bad_entry, reason } = result;
    expect(count).toBe(1);
    if (v.intact)
      expect([exit, verdict, entries, result.head, bad_entry, reason]).toEqual([
        0,
        'intact',
        v.entries,
        v.head,
        undefined,
        undefined,
      ]);
    else expect([exit, verdict, bad_entry, reason]).toEqual([1, 'broken', v.bad_entry, v.reason]);
    expect(result).not.toHaveProperty('receipt');
    expect(result.report.report).toBe('nd7/report/v1');
  });
});

describe('every receipt vector gets its verdict', () => {
  test.each(receiptVectors.map((v) => [v.name, v] as const))('%s', async (_, v) => {
    const receipt = [join(v.folder, `${v.name}.tlog-proof`)];
    const { result, exit } = await run(join(v.folder, v.log), {
      session: v.session,
      head: '/dev/null',
      receipt,
      vaultKey: v.vkeys,
    });
    expect([result.receipt, exit]).toEqual(v.holds ? ['holds', result.verdict === 'intact' ? 0 : 1] : [v.reason, 1]);
  });
});

describe('what is asked for', () => {
  const intact = logs.find(({ name }) => name === 'sealed-tail-without-seal') as (typeof logs)[number];
  const cut = logs.find(({ name }) => name === 'tail-cut') as (typeof logs)[number];

  /** A home with some of the vectors as its sessions. */
  function homeOf(vectors: readonly (typeof logs)[number][]): string {
    const home = throwAwayFolder();
    for (const v of vectors) {
      const folder = join(home, 'sessions', v.session);
      mkdirSync(folder, { recursive: true });
      copyFileSync(join(v.folder, `${v.name}.jsonl`), join(folder, 'log.jsonl'));
      copyFileSync(join(v.folder, `${v.name}.head.json`), join(folder, 'head.json'));
    }
    return home;
  }

  test('a session by its id, by the beginning of it, or the one written last', async () => {
    const home = homeOf([intact]);
    for (const named of [intact.session, intact.session.slice(0, 6), undefined]) {
      expect((await run(named, {}, home)).result).toMatchObject({
        session: intact.session,
        verdict: 'intact',
        entries: 9,
      });
    }
    expect(await refusal('nobody', {}, home)).toMatchObject({ exitCode: 2, code: 'no-session' });
    expect(await refusal(undefined, {}, throwAwayFolder())).toMatchObject({ exitCode: 2, code: 'no-session' });
    const two = homeOf([intact, { ...cut, session: `${intact.session}x` }]);
    expect((await run(intact.session, {}, two)).result.session).toBe(intact.session);
    expect((await refusal(intact.session.slice(0, 6), {}, two)).message).toContain('is the beginning of 2 sessions');
  });

  test('all sessions: one bad one is named and makes the exit 1', async () => {
    const { result, exit } = await run(undefined, { all: true }, homeOf([intact, cut]));
    expect([exit, result.verdict]).toEqual([1, 'broken']);
    expect(result.sessions?.map(({ session, verdict, reason }) => [session, verdict, reason]).sort()).toEqual(
      [
        [intact.session, 'intact', undefined],
        [cut.session, 'broken', 'truncated'],
      ].sort(),
    );
    expect((await run(undefined, { all: true }, homeOf([intact]))).exit).toBe(0);
    expect(await refusal('x', { all: true })).toMatchObject({ exitCode: 2 });
  });

  test('head.json counts only beside a file called log.jsonl', async () => {
    const home = homeOf([cut]);
    const folder = join(home, 'sessions', cut.session);
    expect((await run(join(folder, 'log.jsonl'), { session: cut.session })).result.reason).toBe('truncated');
    expect((await run(folder)).result).toMatchObject({ session: cut.session, reason: 'truncated' });
    copyFileSync(join(folder, 'log.jsonl'), join(folder, 'copy.jsonl'));
    const { result } = await run(join(folder, 'copy.jsonl'), { session: cut.session });
    expect(result).toMatchObject({ verdict: 'intact', entries: 9 });
    expect(result.report.rests_on).toEqual([expect.stringContaining('the length rests on nothing')]);
  });

  test('a head file of no form counts as none, as the format has it, and a person is told', async () => {
    const home = homeOf([intact]);
    const own = join(home, 'sessions', intact.session, 'head.json');
    const broken = join(throwAwayFolder(), 'head.json');
    writeFileSync(broken, '{"entries":9}\n');
    const told = async (options: Partial<VerifyOptions>) => {
      const io = capturedIo({ home, isJson: true });
      await verify(io, intact.session, asked(options));
      expect(io.values[0]).toMatchObject({ verdict: 'intact', entries: 9 });
      return io.lines.filter((text) => text.includes('is no head file'));
    };
    expect(await told({})).toEqual([]);
    expect(await told({ head: '/dev/null' })).toEqual([]);
    expect(await told({ head: broken })).toEqual([expect.stringContaining(broken)]);
    copyFileSync(broken, own);
    expect(await told({})).toEqual([expect.stringContaining(own)]);
  });

  test('mistakes are one message and exit 2', async () => {
    const file = join(intact.folder, `${intact.name}.jsonl`);
    expect((await refusal(file)).hint).toContain('--session ID');
    expect((await refusal(file, { session: '../x' })).message).toContain('no session id');
    expect(await refusal('/nowhere/log.jsonl', { session: 'x' })).toMatchObject({ exitCode: 2, code: 'no-file' });
    expect(await refusal(intact.folder, { session: 'x' })).toMatchObject({ exitCode: 2, code: 'no-file' });
    expect(await refusal(file, { session: 'x', head: '/nowhere/head.json' })).toMatchObject({
      exitCode: 2,
      code: 'no-file',
    });
    const receipt = [join(VECTORS, 'receipts/good-first.tlog-proof')];
    expect((await refusal(file, { session: 'x', receipt })).hint).toContain('--vault-key');
    expect((await refusal(file, { session: 'x', receipt, vaultKey: ['nonsense'] })).message).toContain(
      "not a vault's verifier key",
    );
    const policy = join(throwAwayFolder(), 'policy');
    writeFileSync(policy, 'log here\n');
    expect((await refusal(file, { session: 'x', receipt, vaultKey: [receipts.vkey], policy })).message).toContain(
      'line 1',
    );
  });

  test('receipts kept beside a log are used when asked for, under the pinned key', async () => {
    const home = throwAwayFolder();
    const folder = join(home, 'sessions', receipts.session);
    mkdirSync(join(folder, 'receipts'), { recursive: true });
    copyFileSync(join(VECTORS, 'receipts', receipts.log), join(folder, 'log.jsonl'));
    const keep = (name: string, entries: number) =>
      copyFileSync(
        join(VECTORS, 'receipts', `${name}.tlog-proof`),
        join(folder, 'receipts', `${String(entries)}.tlog-proof`),
      );
    keep('good-first', 8);
    keep('good-last', 20);
    const vault = {
      url: 'http://127.0.0.1:1',
      team: 'acme',
      origin: 'vault.example/acme',
      vkey: receipts.vkey,
      machine: 'ab'.repeat(32),
      token: 'x',
      policy: 'quorum none\n',
    };
    expect((await refusal(receipts.session, { receipts: true }, home)).hint).toContain('nd7 enrol');
    writeFileSync(join(home, 'vault.json'), JSON.stringify(vault));
    expect((await run(receipts.session, {}, home)).result).not.toHaveProperty('receipt');
    expect(await run(receipts.session, { receipts: true }, home)).toMatchObject({
      exit: 0,
      result: { receipt: 'holds', verdict: 'intact' },
    });
    keep('other-head', 9);
    expect(await run(receipts.session, { receipts: true }, home)).toMatchObject({
      exit: 1,
      result: { receipt: 'receipt-mismatch', verdict: 'broken', bad_entry: 7 },
    });
    // The same from an exported folder, with the key named.
    const exported = join(throwAwayFolder(), receipts.session);
    cpSync(folder, exported, { recursive: true });
    expect(await run(exported, { receipts: true, vaultKey: [receipts.vkey] })).toMatchObject({
      exit: 1,
      result: { receipt: 'receipt-mismatch' },
    });
  });

  test('a success that rests on the local head says so, a broken log names the entry, for people', async () => {
    const say = async (v: (typeof logs)[number]) => {
      const io = capturedIo({ home: homeOf([v]) });
      await verify(io, v.session, asked());
      return io.lines.join('\n');
    };
    const good = await say(intact);
    expect(good).toContain('rests on the local head only');
    expect(good).toContain('sealed, first key not pinned: rests on the machine key');
    expect(good).toContain('unsealed tail: 5 entries');
    expect(good).toMatch(/integrity +Unchanged/);
    expect(await say(cut)).toContain('broken at entry 9: truncated');
  });

  test('an entry that is being written is not a torn tail; bytes that stay are', async () => {
    const home = homeOf([intact]);
    const log = join(home, 'sessions', intact.session, 'log.jsonl');
    const bytes = readFileSync(log);
    const cutAt = bytes.length - 40;
    writeFileSync(log, bytes.subarray(0, cutAt));
    const timer = setTimeout(() => appendFileSync(log, bytes.subarray(cutAt)), 200);
    expect((await run(intact.session, {}, home)).result).toMatchObject({ verdict: 'intact', entries: 9 });
    clearTimeout(timer);
    writeFileSync(log, bytes.subarray(0, cutAt));
    expect((await run(intact.session, {}, home)).result).toMatchObject({ reason: 'torn-tail', bad_entry: 8 });
  }, 30_000);
});

describe('the real command', () => {
  const bin = join(REPOSITORY, 'apps/agent/bin/nd7.js');
  const exec = promisify(execFile);
  const nd7 = async (...args: string[]) => {
    const env = { ...process.env, ND7_HOME: join(throwAwayFolder(), 'home') };
    const answer = await exec(process.execPath, [bin, ...args], { env, cwd: VECTORS }).catch(
      (e: unknown) => e as { code: number; stdout: string; stderr: string },
    );
    return { exit: 'code' in answer ? answer.code : 0, out: answer.stdout, err: answer.stderr };
  };

  test('prints one JSON object and exits 0 or 1 by the verdict, 2 for a mistake', async () => {
    const sealed = logs.find(({ name }) => name === 'sealed')?.session ?? '';
    const good = await nd7(
      'verify',
      'logs/sealed.jsonl',
      '--session',
      sealed,
      '--head',
      'logs/sealed.head.json',
      '--json',
    );
    expect([good.exit, good.err]).toEqual([0, '']);
    expect(JSON.parse(good.out)).toMatchObject({ verdict: 'intact', entries: 9 });
    const bad = await nd7(
      'verify',
      '--json',
      'logs/not-utf8.jsonl',
      '--session',
      logs.find(({ name }) => name === 'not-utf8')?.session ?? '',
    );
    expect([bad.exit, JSON.parse(bad.out)]).toMatchObject([1, { verdict: 'broken', bad_entry: 8, reason: 'not-utf8' }]);
    const receipt = await nd7(
      'verify',
      'receipts/log.jsonl',
      '--session',
      receipts.session,
      '--receipt',
      'receipts/log-too-short.tlog-proof',
      '--vault-key',
      receipts.vkey,
      '--json',
    );
    expect([receipt.exit, JSON.parse(receipt.out)]).toMatchObject([1, { receipt: 'truncated' }]);
    const none = await nd7('verify', 'nowhere');
    expect([none.exit, none.out]).toEqual([2, '']);
    expect(none.err).toMatch(/^nd7: there is no session nowhere/);
    expect((await nd7('verify', '--wrong')).exit).toBe(2);
  }, 60_000);
});
