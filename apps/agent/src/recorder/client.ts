import { connect } from 'node:net';
import { join } from 'node:path';
import { socketAddress } from '@nd7/kernel';
import { decodeAnswer, encodeRequest } from './frames.js';
import type { Answer } from './frames.js';

/** The folder and name of the recorder's socket under a home. */
export function socketOf(home: string): { folder: string; name: string } {
  return { folder: join(home, 'run'), name: 'hook' };
}

/**
 * Asks the recorder of a home; undefined when none listens, when it goes away or does not answer within `timeoutMs`. Never throws:
 * whoever asks has something to do without a recorder too.
 */
export function askRecorder(home: string, op: string, options: AskOptions = {}): Promise<Answer | undefined> {
  return askAt(socketOf(home), op, options);
}

export interface AskOptions {
  meta?: Record<string, string>;
  payload?: Uint8Array;
  /** 10 s; Infinity: as long as it takes. */
  timeoutMs?: number;
}

/** The same of any socket that speaks so. */
export function askAt(
  { folder, name }: { folder: string; name: string },
  op: string,
  options: AskOptions = {},
): Promise<Answer | undefined> {
  let address: ReturnType<typeof socketAddress>;
  try {
    address = socketAddress(folder, name);
  } catch {
    return Promise.resolve(undefined); // no folder, no recorder
  }
  return new Promise((resolve) => {
    const chunks: Buffer[] = [];
    const socket = connect(address.path);
    const { timeoutMs = 10_000 } = options;
    const timer = timeoutMs === Infinity ? undefined : setTimeout(() => finish(undefined), timeoutMs);
    const finish = (answer: Answer | undefined): void => {
      clearTimeout(timer);
      socket.destroy();
      address.close();
      resolve(answer);
    };
    // Not end(): the recorder reads lengths, and a half-closed socket would look like a client that gave up.
    socket.once('connect', () => socket.write(encodeRequest(op, options.meta ?? {}, options.payload)));
    socket.on('data', (chunk: Buffer) => {
      chunks.push(chunk);
      const answer = decodeAnswer(Buffer.concat(chunks));
      if (answer !== undefined) finish(answer);
    });
    socket.once('error', () => finish(undefined));
    socket.once('close', () => finish(undefined));
  });
}

/** Asks and reads the JSON on stdout; undefined without a recorder or with an answer that is none. */
export async function askJson(
  home: string,
  op: string,
  payload: unknown = {},
  timeoutMs?: number,
): Promise<Record<string, unknown> | undefined> {
  const answer = await askRecorder(home, op, {
    payload: Buffer.from(JSON.stringify(payload)),
    ...(timeoutMs === undefined ? {} : { timeoutMs }),
  });
  if (answer === undefined) return undefined;
  try {
    const value: unknown = JSON.parse(answer.stdout);
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : undefined;
  } catch {
    return undefined;
  }
}
