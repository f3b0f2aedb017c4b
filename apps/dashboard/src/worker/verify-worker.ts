/**
 * The worker that checks. It has no network and no page: bytes come in as messages, verdicts go out, and its own response is the only one
 * that may run WebAssembly. Every verdict is made by `@nd7/verify`, `@nd7/receipt`, `@nd7/tlog` and `@nd7/segment`; here is only the post.
 */
import { blake3Hex, createKernel } from '@nd7/blake3';
import { parseHeadFile } from '@nd7/chain';
import { parseVkey } from '@nd7/tlog';
import { verifySession } from '@nd7/verify';
import { checkCheckpoint } from './checkpoint.js';
import { browserVerifier } from './ed25519.js';
import { checkFork } from './fork.js';
import { Inbox } from './inbox.js';
import { followInclusion } from './inclusion.js';
import { LineSplitter } from './lines.js';
import type { Answer, Question, SessionInput, SessionResult, VkeyResult } from './protocol.js';
import { type Row, rowOf } from './row.js';

/** How many rows go to the page at once. */
const ROWS = 512;

const inboxes = new Map<number, Inbox>();
const waitingTiles = new Map<number, Map<string, (tile: Uint8Array | undefined) => void>>();
const verifier = browserVerifier();

const post = (answer: Answer) => {
  self.postMessage(answer);
};

function openInbox(id: number): Inbox {
  const inbox = new Inbox((bytes) => {
    post({ id, tell: 'took', bytes });
  });
  inboxes.set(id, inbox);
  return inbox;
}

async function session(id: number, input: SessionInput): Promise<SessionResult> {
  const started = performance.now();
  const { verify, kind } = await verifier;
  let read = 0;
  const head = input.head === undefined ? undefined : parseHeadFile(input.head);
  const report = await verifySession({
    session: input.session,
    bytes: openInbox(id),
    ...(head && { head }),
    receipts: [...input.receipts],
    trust: { keys: input.vkeys.map(parseVkey).filter((key) => key !== undefined) },
    kernel: createKernel(),
    verify,
    now: input.now,
    onProgress: (bytes, entries) => {
      read = bytes;
      post({ id, tell: 'progress', bytes, entries });
    },
  });
  const took_ms = performance.now() - started;
  const result: SessionResult = {
    kind: 'session',
    report,
    at: input.now,
    bytes: read,
    took_ms,
    signatures: kind,
    vkeys: input.vkeys,
  };
  if (input.head !== undefined) result.head_usable = head !== undefined;
  return result;
}

async function rows(id: number): Promise<number> {
  let [batch, count]: [Row[], number] = [[], 0];
  const flush = () => {
    if (batch.length > 0) post({ id, tell: 'rows', rows: batch });
    batch = [];
  };
  const splitter = new LineSplitter(createKernel(), (line) => {
    batch.push(rowOf(count, line));
    count += 1;
    if (batch.length >= ROWS) flush();
  });
  for await (const chunk of openInbox(id)) {
    splitter.push(chunk);
    flush();
  }
  splitter.finish();
  flush();
  return count;
}

function vkey(text: string): VkeyResult {
  const key = parseVkey(text);
  if (key?.type !== 1) return { kind: 'vkey', ok: false };
  return { kind: 'vkey', ok: true, name: key.name, id: key.id.toString(16).padStart(8, '0') };
}

async function tileFromPage(id: number, path: string): Promise<Uint8Array | undefined> {
  return new Promise((resolve) => {
    const waiting = waitingTiles.get(id) ?? new Map<string, (tile: Uint8Array | undefined) => void>();
    waitingTiles.set(id, waiting.set(path, resolve));
    post({ id, tell: 'need', path });
  });
}

async function answer(question: Question): Promise<unknown> {
  const { id } = question;
  switch (question.op) {
    case 'session':
      return session(id, question.input);
    case 'rows':
      return rows(id);
    case 'checkpoint':
      return checkCheckpoint(question, (await verifier).verify, (path) => tileFromPage(id, path));
    case 'inclusion':
      return followInclusion(question, (await verifier).verify);
    case 'fork':
      return checkFork(question.claims, (await verifier).verify);
    case 'vkey':
      return vkey(question.text);
    case 'hash':
      return blake3Hex(question.chunk);
    default:
      return undefined;
  }
}

self.onmessage = (event: MessageEvent<Question>) => {
  const question = event.data;
  const { id } = question;
  switch (question.op) {
    case 'bytes':
      inboxes.get(id)?.push(question.chunk);
      return;
    case 'end':
      inboxes.get(id)?.end();
      return;
    case 'stop':
      inboxes.get(id)?.stop();
      return;
    case 'tile':
      waitingTiles.get(id)?.get(question.path)?.(question.tile);
      return;
    default:
      answer(question)
        .then((value) => {
          post({ id, tell: 'done', value });
        })
        .catch((error: unknown) => {
          post({ id, tell: 'failed', message: error instanceof Error ? error.message : String(error) });
        })
        .finally(() => {
          inboxes.delete(id);
          waitingTiles.delete(id);
        });
  }
};
