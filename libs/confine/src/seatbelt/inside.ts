// A process of its own (`launch.ts` starts it): reads what to do from descriptor 3, confines itself for good, tries whether that holds, and becomes the
// program when it is told to. Never run in a process that goes on: the profile holds for all of it.
import { closeSync, openSync, readSync, unlinkSync, writeSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { applySeatbelt, becomeProgram, KernelError } from '@nd7/kernel';
import type { SeatbeltPlan, Tried } from './launch.js';

const CHANNEL = 3;
const FAILED = 125;

const say = (message: object): void => void writeSync(CHANNEL, `${JSON.stringify(message)}\n`);

function readLine(): string {
  const parts: Buffer[] = [];
  const bytes = Buffer.alloc(65_536);
  for (;;) {
    const n = readSync(CHANNEL, bytes);
    if (n === 0) process.exit(FAILED);
    parts.push(Buffer.from(bytes.subarray(0, n)));
    if (bytes[n - 1] === 0x0a) return Buffer.concat(parts).toString();
  }
}

/** The errno of an attempt; null where it succeeded. */
function refusal(attempt: () => void): string | null {
  try {
    attempt();
    return null;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code ?? 'error';
  }
}

async function tried({ canary, outside, port, front }: SeatbeltPlan['selfTest']): Promise<Tried> {
  const planted = join(outside, `.nd7~self-test-${process.pid}`);
  return {
    'read-hidden': refusal(() => closeSync(openSync(canary, 'r'))),
    'write-outside': refusal(() => {
      closeSync(openSync(planted, 'wx'));
      unlinkSync(planted);
    }),
    tcp: await new Promise((done) => {
      const socket = connect(port, '127.0.0.1');
      socket.once('connect', () => {
        socket.destroy();
        done(null);
      });
      socket.once('error', (error: NodeJS.ErrnoException) => done(error.code ?? 'error'));
    }),
    signal: refusal(() => process.kill(front, 0)),
  };
}

const plan = JSON.parse(readLine()) as SeatbeltPlan;
try {
  process.chdir(plan.cwd);
  applySeatbelt(plan.profile, plan.parameters, plan.library);
} catch (error) {
  say({ failed: error instanceof Error ? error.message : String(error) });
  process.exit(FAILED);
}
say({ tried: await tried(plan.selfTest) });
readLine();
try {
  becomeProgram(
    plan.program,
    plan.argv,
    Object.entries(plan.environment).map(([name, value]) => `${name}=${value}`),
  );
} catch (error) {
  const errno = error instanceof KernelError ? error.errno : undefined;
  writeSync(
    2,
    `nd7: ${plan.argv[0] ?? ''}: ${errno === 'ENOENT' ? 'No such file or directory' : (errno ?? 'cannot be run')}\n`,
  );
  process.exit(errno === 'ENOENT' ? 127 : 126);
}
