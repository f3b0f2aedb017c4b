// The matcher in C as a program that answers questions: native/observe/test/names-oracle.c.
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';

const NATIVE = join(import.meta.dirname, '../../../../native/observe');
const NONE = 0xffffffff;

export function buildOracle(): void {
  const script = `import(${JSON.stringify(join(NATIVE, 'test/build-names.mjs'))}).then((module) => module.buildNames())`;
  const built = spawnSync(process.execPath, ['-e', script], { encoding: 'utf8' });
  if (built.status !== 0) throw new Error(built.stderr);
}

export const fuzzer = join(NATIVE, 'build/names-fuzz');

export interface Judged {
  mask: number | undefined;
  maskParts: number;
  leaf: number | undefined;
  leafParts: number;
  treatment: number;
  mediator: number;
  above: boolean;
}

export interface Asked {
  path: Buffer;
  gitDirs?: readonly Buffer[];
  held?: readonly Buffer[];
}

/** One program with one table. */
export class Oracle {
  constructor(
    private readonly table: Uint8Array,
    private readonly build: 'names-oracle' | 'names-oracle-sanitized' = 'names-oracle',
  ) {}

  judge(asked: readonly Asked[]): Judged[] {
    const answer = this.#ask(
      asked.map(({ path, gitDirs = [], held = [] }) => [
        2,
        Buffer.concat([u32(gitDirs.length, held.length), ...[...gitDirs, ...held].flatMap(sized), path]),
      ]),
    );
    return asked.map((_one, i) => {
      const word = (n: number): number => answer.readUInt32LE((i * 7 + n) * 4);
      const index = (n: number): number | undefined => (word(n) === NONE ? undefined : word(n));
      return {
        mask: index(0),
        maskParts: word(1),
        leaf: index(2),
        leafParts: word(3),
        treatment: word(4),
        mediator: word(5),
        above: word(6) === 1,
      };
    });
  }

  fold(names: readonly string[]): string[] {
    const answer = this.#ask(names.map((name) => [3, Buffer.from(name)]));
    let at = 0;
    return names.map(() => {
      const length = answer.readUInt32LE(at);
      at += 4 + length;
      return answer.toString('utf8', at - length, at);
    });
  }

  /** Whether the folder `from`, which is on the disk, may be moved to `to`; and what below it decides. */
  move(from: string, to: string): { outcome: 'free' | 'refused' | 'unknown'; path: string } {
    const answer = this.#ask([[4, Buffer.concat([...sized(Buffer.from(from)), Buffer.from(to)])]], from);
    return {
      outcome: (['free', 'refused', 'unknown'] as const)[answer.readUInt32LE(0)] ?? 'unknown',
      path: answer.toString('utf8', 8, 8 + answer.readUInt32LE(4)),
    };
  }

  /** Nanoseconds of processor time that one judgement takes. */
  time(path: string, rounds: number): number {
    return this.#ask([[5, Buffer.concat([u32(rounds), Buffer.from(path)])]]).readUInt32LE(0);
  }

  #ask(records: readonly (readonly [number, Buffer])[], cwd?: string): Buffer {
    const input = Buffer.concat(
      [[1, Buffer.from(this.table)] as const, ...records].flatMap(([kind, body]) => [u32(kind, body.length), body]),
    );
    const ran = spawnSync(join(NATIVE, 'build', this.build), [], { input, cwd, maxBuffer: 1 << 30 });
    if (ran.status !== 0 || ran.stdout.readUInt32LE(0) !== 0)
      throw new Error(`the matcher ended with ${ran.status ?? ran.signal}: ${ran.stderr.toString()}`);
    return ran.stdout.subarray(4);
  }
}

const sized = (bytes: Buffer): Buffer[] => [u32(bytes.length), bytes];

function u32(...values: number[]): Buffer {
  const bytes = Buffer.alloc(values.length * 4);
  values.forEach((value, i) => bytes.writeUInt32LE(value, i * 4));
  return bytes;
}
