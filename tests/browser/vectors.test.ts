// Every vector of the formats gets its verdict in Chromium, from the very worker that the dashboard ships, under its own policy.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Browser, Page } from 'playwright-core';
import { inChromium, startChromium } from './fixtures/chromium.js';
import { DIST } from './fixtures/dist.js';
import { WORKER_POLICY } from '../../apps/vault/src/http/headers.js';
import { FixtureVault } from './fixtures/server.js';
import { Team } from './fixtures/team.js';

const VECTORS = join(import.meta.dirname, '..', 'vectors');
const json = <T>(file: string): T => JSON.parse(readFileSync(join(VECTORS, file), 'utf8')) as T;

interface Log {
  name: string;
  session?: string;
  intact: boolean;
  entries?: number;
  head?: string;
  bad_entry?: number;
  reason?: string;
  head_file?: boolean;
  head_usable?: boolean;
}
interface ReceiptCase {
  name: string;
  vkeys?: string[];
  log?: string;
  holds: boolean;
  reason?: string;
}
interface Question {
  session: string;
  log: string;
  head?: string;
  receipt?: string;
  vkeys: string[];
}
interface Verdict {
  verdict: string;
  entries: number;
  head: string;
  bad_entry?: number;
  reason?: string;
  receipt?: string;
  head_usable?: boolean;
}

/** Where the page keeps its one Trusted Types policy. */
interface Holder {
  policy: { createScriptURL: (text: string) => string };
  trustedTypes: { createPolicy: (name: string, rules: Holder['policy']) => Holder['policy'] };
}

let vault: FixtureVault;
let browser: Browser;
let page: Page;

/** Built in a process of its own: the bundler does not start inside the test runner's realm. */
function bundle(): string {
  const folder = mkdtempSync(join(tmpdir(), 'nd7-vectors-'));
  try {
    const vite = join(import.meta.dirname, '..', '..', 'node_modules', 'vite', 'bin', 'vite.js');
    execFileSync(process.execPath, [vite, 'build', '--config', 'vectors.vite.config.mjs', '--outDir', folder], {
      cwd: import.meta.dirname,
      stdio: 'pipe',
    });
    return readFileSync(join(folder, 'vectors-worker.js'), 'utf8');
  } finally {
    rmSync(folder, { recursive: true });
  }
}

const file = (path: string) => readFileSync(join(VECTORS, path)).toString('base64');

/** Asks the shipped worker, all questions at once. */
async function ask(questions: Question[]): Promise<Verdict[]> {
  const worker = readdirSync(join(DIST, 'assets')).find((name) => name.startsWith('verify-worker'))!;
  return page.evaluate(
    async ([url, all]) => {
      const { policy } = window as unknown as Holder;
      const worker = new Worker(policy.createScriptURL(url));
      const lost = new Promise<never>((_, fail) => {
        worker.onerror = (event) => {
          fail(new Error(`the worker could not be run: ${event.message}`));
        };
      });
      const bytes = (base64: string) => Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
      const waiting = new Map<number, (value: unknown) => void>();
      worker.onmessage = (event: MessageEvent<{ id: number; tell: string; value?: unknown; message?: string }>) => {
        if (event.data.tell === 'done') waiting.get(event.data.id)?.(event.data.value);
        if (event.data.tell === 'failed') waiting.get(event.data.id)?.({ failed: event.data.message });
      };
      const answers = Promise.all(
        all.map(async (question, id) => {
          const done = new Promise((resolve) => waiting.set(id, resolve));
          const input = {
            session: question.session,
            vkeys: question.vkeys,
            now: 0,
            receipts: question.receipt === undefined ? [] : [bytes(question.receipt)],
            ...(question.head !== undefined && { head: bytes(question.head) }),
          };
          worker.postMessage({ id, op: 'session', input });
          const log = bytes(question.log);
          // Cut at odd places: a stream has no regard for lines.
          for (let at = 0; at < log.length; at += 65_537)
            worker.postMessage({ id, op: 'bytes', chunk: log.slice(at, at + 65_537) });
          worker.postMessage({ id, op: 'end' });
          const result = (await done) as {
            report: {
              verdict: string;
              entries: number;
              head: string;
              bad_entry?: number;
              reason?: string;
              receipts: { result: string }[];
            };
            head_usable?: boolean;
            failed?: string;
          };
          if (result.failed !== undefined) throw new Error(result.failed);
          const { verdict, entries, head, bad_entry, reason, receipts } = result.report;
          return {
            verdict,
            entries,
            head,
            ...(bad_entry !== undefined && { bad_entry }),
            ...(reason !== undefined && { reason }),
            ...(receipts[0] && { receipt: receipts[0].result }),
            ...(result.head_usable !== undefined && { head_usable: result.head_usable }),
          };
        }),
      );
      const verdicts = await Promise.race([answers, lost]);
      worker.terminate();
      return verdicts;
    },
    [`/assets/${worker}`, questions] as const,
  );
}

const expected = (log: Log) =>
  log.intact
    ? { verdict: 'intact', ...(log.entries !== undefined && { entries: log.entries, head: log.head }) }
    : { verdict: 'broken', bad_entry: log.bad_entry, reason: log.reason };
const got = (log: Log, verdict: Verdict) =>
  log.intact
    ? { verdict: verdict.verdict, ...(log.entries !== undefined && { entries: verdict.entries, head: verdict.head }) }
    : { verdict: verdict.verdict, bad_entry: verdict.bad_entry, reason: verdict.reason };

/** What vectors-worker.ts answers. */
interface Answer {
  kind: string;
  network: { reached: string[]; refused: string[] };
  own: boolean[];
  noble: boolean[];
  plain: string[];
  lines: (string | null)[];
}

inChromium('every vector in this browser', () => {
  beforeAll(async () => {
    vault = await FixtureVault.start(new Team());
    const code = bundle();
    vault.bend.files = {
      '/bare': { text: '<!doctype html><title>vectors</title>', type: 'text/html' },
      '/assets/verify-worker-vectors.js': { text: code, type: 'text/javascript', policy: WORKER_POLICY },
    };
    browser = await startChromium();
    page = await browser.newPage();
    await page.goto(`${vault.url}/bare`);
    await page.evaluate(() => {
      const holder = window as unknown as Holder;
      holder.policy = holder.trustedTypes.createPolicy('nd7-worker', { createScriptURL: (text: string) => text });
    });
  });
  afterAll(async () => {
    await (browser as Browser | undefined)?.close();
    await (vault as FixtureVault | undefined)?.stop();
  });

  it('all logs', async () => {
    const logs = json<Log[]>('logs/index.json');
    const verdicts = await ask(
      logs.map((log) => ({
        session: log.session!,
        log: file(`logs/${log.name}.jsonl`),
        head: file(`logs/${log.name}.head.json`),
        vkeys: [],
      })),
    );
    expect(logs.length).toBe(126);
    expect(verdicts.map((verdict, i) => [logs[i]!.name, got(logs[i]!, verdict)])).toEqual(
      logs.map((log) => [log.name, expected(log)]),
    );
  });

  it('all edge cases', async () => {
    const { session, logs } = json<{ session: string; logs: Log[] }>('edge/index.json');
    const verdicts = await ask(
      logs.map((log) => ({
        session,
        log: file(`edge/${log.name}.jsonl`),
        ...(log.head_file === true && { head: file(`edge/${log.name}.head.json`) }),
        vkeys: [],
      })),
    );
    expect(logs.length).toBe(39);
    expect(verdicts.map((verdict, i) => [logs[i]!.name, got(logs[i]!, verdict), verdict.head_usable])).toEqual(
      logs.map((log) => [log.name, expected(log), log.head_file === true ? log.head_usable : undefined]),
    );
  });

  it('all receipts', async () => {
    const plain = json<{ vkey: string; session: string; log: string; receipts: ReceiptCase[] }>('receipts/index.json');
    const edge = json<{ session: string; receipts: ReceiptCase[] }>('edge/index.json');
    const cases = [
      ...plain.receipts.map((one) => ({
        one,
        question: {
          session: plain.session,
          log: `receipts/${plain.log}`,
          receipt: `receipts/${one.name}.tlog-proof`,
          vkeys: [plain.vkey],
        },
      })),
      ...edge.receipts.map((one) => ({
        one,
        question: {
          session: edge.session,
          log: `edge/${one.log!}`,
          receipt: `edge/${one.name}.tlog-proof`,
          vkeys: one.vkeys!,
        },
      })),
    ];
    const verdicts = await ask(
      cases.map(({ question }) => ({ ...question, log: file(question.log), receipt: file(question.receipt) })),
    );
    expect(cases.length).toBe(77);
    expect(verdicts.map((verdict, i) => [cases[i]!.one.name, verdict.receipt])).toEqual(
      cases.map(({ one }) => [one.name, one.holds ? 'holds' : one.reason]),
    );
  });

  describe('in a worker of its own', () => {
    const ed25519 = json<{
      cases: { message: string; pub_key: string; signature: string; accept: boolean; note: string }[];
    }>('ed25519-strict.json').cases;
    const blake3 = json<{ cases: { input_len: number; hash: string }[] }>('blake3.json').cases;
    const answerOf = (script: string) =>
      page.evaluate(
        async (asked) => {
          const { policy } = window as unknown as Holder;
          const worker = new Worker(policy.createScriptURL(asked.script));
          return new Promise<Answer>((resolve, reject) => {
            worker.onmessage = (event: MessageEvent<Answer>) => {
              resolve(event.data);
            };
            worker.onerror = (event) => {
              reject(new Error(event.message));
            };
            worker.postMessage(asked);
          });
        },
        { script, ed25519, blake3: blake3.map((one) => one.input_len), address: '/nd7.svg' },
      );
    let answer: Answer;
    beforeAll(async () => {
      answer = await answerOf('/assets/verify-worker-vectors.js');
    });

    it('all signatures, by this browser’s crypto and by plain JavaScript', () => {
      const accept = ed25519.map((one) => one.accept);
      expect(answer).toMatchObject({ kind: 'webcrypto', own: accept, noble: accept });
    });

    it('all hashes, by both kernels', () => {
      expect(answer.plain).toEqual(blake3.map((one) => one.hash));
      const lines = answer.lines.map((hash, i) => [blake3[i]!.input_len, hash]).filter(([, hash]) => hash !== null);
      expect(lines).toEqual(blake3.filter((_, i) => answer.lines[i] !== null).map((one) => [one.input_len, one.hash]));
      expect(lines.length).toBeGreaterThan(5);
    });

    it('under the vault’s policy there is WebAssembly and no network; a word more, and there is', async () => {
      expect(answer.network).toEqual({ reached: [], refused: ['connect-src', 'script-src', 'script-src-elem'] });
      vault.bend.files!['/assets/verify-worker-loose.js'] = {
        ...vault.bend.files!['/assets/verify-worker-vectors.js']!,
        policy: `${WORKER_POLICY}; connect-src 'self'`,
      };
      expect((await answerOf('/assets/verify-worker-loose.js')).network.reached).toEqual(['fetch']);
    });
  });
});
