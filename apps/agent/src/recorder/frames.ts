// The socket between a hook and the recorder, as docs/protocol/hook-socket.md has it: one request and one answer per connection.
const MAGIC = Buffer.from('nd7\x01', 'latin1');
const META_LIMIT = 65_536;

/** Reading a payload stops here; what came so far is sent and marked. */
export const PAYLOAD_LIMIT = 67_108_864;

export interface Request {
  op: string;
  /** The `key=value` strings of the meta part, later ones win. */
  meta: ReadonlyMap<string, string>;
  payload: Buffer;
}

export interface Answer {
  exit: number;
  stdout: string;
  stderr: string;
}

/** Environment variables in a request, without their `env.` prefix. */
export function environmentOf(request: Request): Record<string, string> {
  const env: Record<string, string> = {};
  for (const [key, value] of request.meta) if (key.startsWith('env.')) env[key.slice(4)] = value;
  return env;
}

export function encodeRequest(
  op: string,
  meta: Readonly<Record<string, string>>,
  payload: Uint8Array = new Uint8Array(),
): Buffer {
  const strings = Object.entries({ op, ...meta })
    .map(([key, value]) => `${key}=${value.replaceAll('\0', '')}\0`)
    .join('');
  const metaBytes = Buffer.from(strings, 'utf8');
  return Buffer.concat([MAGIC, u32(metaBytes.length), metaBytes, u32(payload.length), payload]);
}

export function encodeAnswer(answer: Answer): Buffer {
  const stdout = Buffer.from(answer.stdout, 'utf8');
  const stderr = Buffer.from(answer.stderr, 'utf8');
  return Buffer.concat([MAGIC, u32(answer.exit), u32(stdout.length), stdout, u32(stderr.length), stderr]);
}

/** Reads a whole answer; undefined when the bytes are none (the other end went away). */
export function decodeAnswer(bytes: Buffer): Answer | undefined {
  if (bytes.length < 12 || !bytes.subarray(0, 4).equals(MAGIC)) return undefined;
  const exit = bytes.readUInt32LE(4);
  const out = bytes.readUInt32LE(8);
  if (bytes.length < 16 + out) return undefined;
  const err = bytes.readUInt32LE(12 + out);
  if (bytes.length < 16 + out + err) return undefined;
  return {
    exit,
    stdout: bytes.toString('utf8', 12, 12 + out),
    stderr: bytes.toString('utf8', 16 + out, 16 + out + err),
  };
}

/** Collects one request from a stream of chunks; bounded by the two limits. */
export class RequestReader {
  private chunks: Buffer[] = [];
  private size = 0;
  private need = 8;
  private metaLength: number | undefined;
  private payloadLength: number | undefined;

  constructor(private readonly limit = PAYLOAD_LIMIT) {}

  /** The request when it is whole, 'more' until then, 'bad' when it is none. */
  push(chunk: Buffer): Request | 'more' | 'bad' {
    this.chunks.push(chunk);
    this.size += chunk.length;
    while (this.size >= this.need) {
      const bytes = this.joined();
      if (this.metaLength === undefined) {
        if (!bytes.subarray(0, 4).equals(MAGIC)) return 'bad';
        this.metaLength = bytes.readUInt32LE(4);
        if (this.metaLength > META_LIMIT) return 'bad';
        this.need = 8 + this.metaLength + 4;
      } else if (this.payloadLength === undefined) {
        this.payloadLength = bytes.readUInt32LE(8 + this.metaLength);
        if (this.payloadLength > this.limit) return 'bad';
        this.need += this.payloadLength;
      } else return this.request(bytes, this.metaLength);
    }
    return 'more';
  }

  private request(bytes: Buffer, metaLength: number): Request {
    const meta = new Map<string, string>();
    for (const pair of bytes.toString('utf8', 8, 8 + metaLength).split('\0')) {
      const at = pair.indexOf('=');
      if (at > 0) meta.set(pair.slice(0, at), pair.slice(at + 1));
    }
    return { op: meta.get('op') ?? '', meta, payload: bytes.subarray(8 + metaLength + 4, this.need) };
  }

  private joined(): Buffer {
    if (this.chunks.length > 1) this.chunks = [Buffer.concat(this.chunks, this.size)];
    return this.chunks[0] ?? Buffer.alloc(0);
  }
}

function u32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value >>> 0);
  return bytes;
}
