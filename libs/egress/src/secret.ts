import { execFile } from 'node:child_process';
import { open } from 'node:fs/promises';
import { promisify } from 'node:util';
import type { Credential } from '@nd7/policy';

/** No credential is larger; a header that large is refused by servers. */
const MOST = 16 << 10;
const COMMAND_MS = 30_000;

/**
 * Reads a credential's secret outside the session: a variable of nd7's own environment, a file's content, or what a command prints (run
 * directly, no shell, in /, at most 30 s). White space around it goes. Throws an Error that says what is wrong and never what was read.
 */
export async function readSecret(from: Credential['from'], environment: NodeJS.ProcessEnv): Promise<string> {
  const secret = (await rawSecret(from, environment)).trim();
  if (secret === '') throw new Error(`${sourceName(from)} is empty`);
  // RFC 9110 section 5.5: what a field value may hold. A line end in it would be a second header.
  if (!/^[\x21-\x7e]+( [\x21-\x7e]+)*$/.test(secret)) throw new Error(`${sourceName(from)} holds what no header can`);
  return secret;
}

async function rawSecret(from: Credential['from'], environment: NodeJS.ProcessEnv): Promise<string> {
  if ('variable' in from) return environment[from.variable] ?? '';
  if ('file' in from) return readStart(from.file);
  const [program = '', ...args] = from.command;
  try {
    return (
      await promisify(execFile)(program, args, { timeout: COMMAND_MS, maxBuffer: MOST, env: environment, cwd: '/' })
    ).stdout;
  } catch (error) {
    // The message of execFile holds what the command printed.
    const { code, killed } = error as { code?: string | number; killed?: boolean };
    throw new Error(
      `${sourceName(from)} ${killed === true ? `did not end within ${String(COMMAND_MS / 1000)} s` : `failed (${String(code)})`}`,
    );
  }
}

async function readStart(path: string): Promise<string> {
  const file = await open(path, 'r').catch((error: NodeJS.ErrnoException) => {
    throw new Error(`the file ${path} cannot be read (${error.code ?? error.message})`);
  });
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(MOST + 1), 0, MOST + 1, 0);
    if (bytesRead > MOST) throw new Error(`the file ${path} is larger than a credential (${String(MOST)} bytes)`);
    return buffer.toString('utf8', 0, bytesRead);
  } finally {
    await file.close();
  }
}

function sourceName(from: Credential['from']): string {
  if ('variable' in from) return `the variable ${from.variable}`;
  return 'file' in from ? `the file ${from.file}` : `the command ${from.command[0] ?? ''}`;
}
