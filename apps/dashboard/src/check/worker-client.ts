import workerUrl from '../worker/verify-worker.ts?worker&url';
import type {
  Answer,
  CheckpointResult,
  ForkClaim,
  ForkResult,
  InclusionResult,
  Question,
  SeenTree,
  SessionInput,
  SessionResult,
  VkeyResult,
} from '../worker/protocol.js';
import type { Row } from '../worker/row.js';
import { type Proof, stamp } from './proofs.js';

/** Bytes under way to the worker before the page waits for it. */
const WINDOW = 8 * 1_048_576;

interface TrustedTypes {
  createPolicy(
    name: string,
    rules: { createScriptURL: (url: string) => string },
  ): { createScriptURL(url: string): URL };
}

/** The one Trusted Types policy of the page: it makes the worker's URL and refuses every other. */
function trustedUrl(url: string): string | URL {
  const types = (globalThis as { trustedTypes?: TrustedTypes }).trustedTypes;
  if (types === undefined) return url;
  policy ??= types.createPolicy('nd7-worker', {
    createScriptURL: (asked) => {
      if (asked !== workerUrl) throw new TypeError('the policy makes the URL of the checking worker only');
      return asked;
    },
  });
  return policy.createScriptURL(url);
}
let policy: ReturnType<TrustedTypes['createPolicy']> | undefined;

interface Pending {
  done: (value: unknown) => void;
  failed: (error: Error) => void;
  heard: (answer: Answer) => void;
}

class Client {
  readonly #worker: Worker;
  readonly #pending = new Map<number, Pending>();
  #next = 1;

  constructor(name: string) {
    this.#worker = new Worker(trustedUrl(workerUrl), { type: 'module', name });
    this.#worker.onmessage = (event: MessageEvent<Answer>) => {
      this.#hear(event.data);
    };
    this.#worker.onerror = (event) => {
      const error = new Error(`the checking worker did not start: ${event.message || 'the browser gave no reason'}`);
      for (const pending of this.#pending.values()) pending.failed(error);
      this.#pending.clear();
    };
  }

  post(question: Question, transfer: Transferable[] = []): void {
    this.#worker.postMessage(question, transfer);
  }

  /** Asks, and gives the id under which more can be sent, and the answer. */
  ask(
    question: QuestionBody,
    heard: (answer: Answer) => void = () => undefined,
  ): { id: number; answer: Promise<unknown> } {
    const id = this.#next++;
    const answer = new Promise<unknown>((done, failed) => {
      this.#pending.set(id, { done, failed, heard });
    });
    this.post({ ...question, id } as Question);
    return { id, answer };
  }

  #hear(answer: Answer): void {
    const pending = this.#pending.get(answer.id);
    if (pending === undefined) return;
    if (answer.tell === 'done') pending.done(answer.value);
    else if (answer.tell === 'failed') pending.failed(new Error(answer.message));
    else {
      pending.heard(answer);
      return;
    }
    this.#pending.delete(answer.id);
  }
}

type DistributiveOmit<T, K extends PropertyKey> = T extends unknown ? Omit<T, K> : never;
type QuestionBody = DistributiveOmit<Question, 'id'>;

let checker: Client | undefined;
let reader: Client | undefined;
/** Two workers of the same file: one gives verdicts, one reads rows for the timeline, so that reading never delays a verdict. */
const check = () => (checker ??= new Client('nd7 check'));
const read = () => (reader ??= new Client('nd7 read'));

/** A log on its way to the worker. */
export interface Feed<T> {
  /** Sends a copy; waits while the worker has enough to do. */
  push(chunk: Uint8Array): Promise<void>;
  end(): void;
  stop(): void;
  result: Promise<T>;
}

function feed<T>(
  client: Client,
  question: QuestionBody,
  heard: (answer: Answer) => void,
  finish: (value: unknown) => T,
): Feed<T> {
  let underWay = 0;
  let wake: (() => void) | undefined;
  const { id, answer } = client.ask(question, (told) => {
    if (told.tell === 'took') {
      underWay -= told.bytes;
      wake?.();
    } else heard(told);
  });
  let over = false;
  const result = answer.then(finish).finally(() => {
    over = true;
    wake?.();
  });
  return {
    async push(chunk) {
      while (underWay > WINDOW && !over) await new Promise<void>((resolve) => (wake = resolve));
      if (over) return;
      underWay += chunk.length;
      const copy = chunk.slice();
      client.post({ id, op: 'bytes', chunk: copy }, [copy.buffer]);
    },
    end: () => {
      client.post({ id, op: 'end' });
    },
    stop: () => {
      client.post({ id, op: 'stop' });
    },
    result,
  };
}

/** Verifies a log in the worker; the verdict comes only when its end has been read. */
export function verifyInWorker(
  input: SessionInput,
  progress: (bytes: number, entries: number) => void,
): Feed<Proof<SessionResult>> {
  return feed(
    check(),
    { op: 'session', input },
    (told) => {
      if (told.tell === 'progress') progress(told.bytes, told.entries);
    },
    (value) => stamp(value as SessionResult),
  );
}

/** Reads a log into timeline rows; resolves to how many lines there are. */
export function rowsInWorker(onRows: (rows: Row[]) => void): Feed<number> {
  return feed(
    read(),
    { op: 'rows' },
    (told) => {
      if (told.tell === 'rows') onRows(told.rows);
    },
    (value) => value as number,
  );
}

/** Judges a checkpoint; `tiles` fetches what a consistency proof needs. */
export async function checkpointInWorker(
  input: { note: string; vkey: string; before?: SeenTree | undefined },
  tiles: (path: string) => Promise<Uint8Array | undefined>,
): Promise<Proof<CheckpointResult>> {
  const client = check();
  const { id, answer } = client.ask({ op: 'checkpoint', ...input }, (told) => {
    if (told.tell !== 'need') return;
    const { path } = told;
    void tiles(path)
      .catch(() => undefined)
      .then((tile) => {
        client.post({ id, op: 'tile', path, tile });
      });
  });
  return stamp((await answer) as CheckpointResult);
}

/** Recomputes a receipt's inclusion proof. */
export async function inclusionInWorker(
  receipt: Uint8Array,
  vkeys: readonly string[],
): Promise<Proof<InclusionResult>> {
  return stamp((await check().ask({ op: 'inclusion', receipt, vkeys }).answer) as InclusionResult);
}

/** Checks a fork's two claims. */
export async function forkInWorker(claims: readonly [ForkClaim, ForkClaim]): Promise<Proof<ForkResult>> {
  return stamp((await check().ask({ op: 'fork', claims }).answer) as ForkResult);
}

/** Takes a verifier key apart. */
export async function vkeyInWorker(text: string): Promise<VkeyResult> {
  return (await check().ask({ op: 'vkey', text }).answer) as VkeyResult;
}

/** BLAKE3 of some bytes, 64 hex. */
export async function hashInWorker(chunk: Uint8Array): Promise<string> {
  return (await check().ask({ op: 'hash', chunk: chunk.slice() }).answer) as string;
}

/** The worker's own script as this page loads it, to be hashed and compared; undefined where it cannot be fetched. */
export async function workerScript(): Promise<Uint8Array | undefined> {
  const answer = await fetch(workerUrl, { credentials: 'same-origin' }).catch(() => undefined);
  return answer?.ok === true ? new Uint8Array(await answer.arrayBuffer()) : undefined;
}
