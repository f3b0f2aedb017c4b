import { createRequire } from 'node:module';
import type koffi from 'koffi';
import { errnoName, KernelError } from './failure.js';

type Koffi = typeof koffi;

/** Where macOS has its C library, which has Seatbelt's functions too. */
const SYSTEM = '/usr/lib/libSystem.B.dylib';
/** The profile is a text and not the name of one (SANDBOX_NAMED is 1). */
const AS_TEXT = 0;
const SIGPIPE = 13;
/** F_SETFD of fcntl(2), on Linux and macOS. */
const SET_DESCRIPTOR_FLAGS = 2;

/**
 * Confines this process, all its threads and all that it starts, for good, by a Seatbelt profile as text. `parameters` is what its `(param …)`
 * stand for. `library` is what has `sandbox_init_with_parameters`, which no header declares. Throws KernelError `no-seatbelt`.
 */
export function applySeatbelt(profile: string, parameters: Readonly<Record<string, string>>, library = SYSTEM): void {
  const pairs = Object.entries(parameters).flat();
  if ([profile, ...pairs].some((text) => text.includes('\0')))
    throw new KernelError('no-seatbelt', 'a NUL in the profile or its parameters: it would end there');
  const k = load();
  const init = functionOf(
    k,
    library,
    'int sandbox_init_with_parameters(const char *profile, uint64_t flags, const char **parameters, _Out_ void **error)',
  );
  const said: unknown[] = [null];
  if (init(profile, AS_TEXT, [...pairs, null], said) === 0) return;
  const text = said[0] == null ? 'it said nothing' : String(k.decode(said[0], 'char', -1));
  if (said[0] != null) functionOf(k, library, 'void sandbox_free_error(void *error)')(said[0]);
  throw new KernelError('no-seatbelt', `the profile was refused: ${text}`);
}

/**
 * Becomes another program: execve(2), with what Node has changed of streams and signals put back; all other descriptors are closed by it. Returns only by throwing KernelError `not-run`, whose
 * `errno` says why.
 */
export function becomeProgram(path: string, argv: readonly string[], environment: readonly string[]): never {
  if ([path, ...argv, ...environment].some((text) => text.includes('\0')))
    throw new KernelError('not-run', 'a NUL in an argument or variable');
  const k = load();
  const library = process.platform === 'darwin' ? SYSTEM : null;
  // Node has the streams that it was started with closed when something is executed.
  const fcntl = functionOf(k, library, 'int fcntl(int fd, int command, ...)');
  for (const stream of [0, 1, 2]) fcntl(stream, SET_DESCRIPTOR_FLAGS, 'int', 0);
  // Ignored signals stay ignored over execve: Node ignores this one.
  functionOf(k, library, 'void *signal(int number, void *handler)')(SIGPIPE, null);
  functionOf(k, library, 'int execve(const char *path, const char **argv, const char **environment)')(
    path,
    [...argv, null],
    [...environment, null],
  );
  const errno = errnoName(k.errno());
  throw new KernelError('not-run', `${path}: ${errno}`, errno);
}

const load = (): Koffi => createRequire(import.meta.url)('koffi') as Koffi;

function functionOf(k: Koffi, library: string | null, prototype: string): (...args: unknown[]) => unknown {
  try {
    return k.load(library).func(prototype) as (...args: unknown[]) => unknown;
  } catch (error) {
    throw new KernelError(
      'no-seatbelt',
      `${library ?? 'the C library'}: ${error instanceof Error ? error.message : String(error)}`,
    );
  }
}
