import { PAYLOAD_LIMIT } from './frames.js';

/** How reading ended: one whole JSON value, end of input, silence, or the limit of size. */
export type Took = 'complete' | 'eof' | 'idle' | 'limit';

/** After so much silence a client that keeps stdin open is taken to have said everything. */
const IDLE_MS = 3_000;

/**
 * Reads a payload without relying on the end of input, which some clients never send: reading stops as soon as one complete JSON value
 * stands there, at the end of input, or after IDLE_MS of silence. Whatever came by then is the payload.
 */
export function readPayload(stdin: NodeJS.ReadStream): Promise<{ payload: Buffer; took: Took }> {
  return new Promise((resolve) => {
    const chunks: Buffer[] = [];
    let size = 0;
    const scan = new ValueScan();
    let timer: NodeJS.Timeout | undefined;
    const finish = (took: Took): void => {
      clearTimeout(timer);
      stdin.removeAllListeners();
      // A pipe that its writer keeps open would keep this process.
      stdin.on('error', () => undefined);
      stdin.destroy();
      resolve({ payload: Buffer.concat(chunks), took });
    };
    const wait = (): void => {
      clearTimeout(timer);
      timer = setTimeout(() => finish('idle'), IDLE_MS);
    };
    wait();
    stdin.on('data', (chunk: Buffer) => {
      chunks.push(chunk);
      size += chunk.length;
      if (size > PAYLOAD_LIMIT) finish('limit');
      else if (scan.push(chunk)) finish('complete');
      else wait();
    });
    stdin.once('end', () => finish('eof'));
    stdin.once('error', () => finish('eof'));
  });
}

/** Follows brackets and strings of a JSON text to see where its first object or array ends; it judges nothing. */
export class ValueScan {
  private depth = 0;
  private inString = false;
  private escaped = false;

  /** True when the value has ended within this chunk. */
  push(chunk: Uint8Array): boolean {
    for (const byte of chunk) {
      if (this.inString) {
        if (this.escaped) this.escaped = false;
        else if (byte === 0x5c) this.escaped = true;
        else if (byte === 0x22) this.inString = false;
      } else if (byte === 0x22) this.inString = true;
      else if (byte === 0x7b || byte === 0x5b) this.depth++;
      else if (byte === 0x7d || byte === 0x5d) {
        this.depth--;
        if (this.depth <= 0) return true;
      }
    }
    return false;
  }
}
