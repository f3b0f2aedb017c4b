import { isVaultError, isShipError } from '@nd7/ship';
import { CliError } from '../cli/io.js';

/** Codes that a changed command line mends. */
const USAGE = new Set(['bad-token', 'bad-name', 'insecure-url', 'not-enrolled', 'enrolled']);

/** What shipping and enrolment throw, as the command line reports it. */
export function asCliError(error: unknown): unknown {
  if (isShipError(error)) return new CliError(USAGE.has(error.code) ? 2 : 1, error.message, undefined, error.code);
  if (isVaultError(error)) {
    const hint =
      error.code === 'unreachable'
        ? 'is the address right, and does the vault run? Everything recorded is kept and can be shipped later'
        : undefined;
    return new CliError(1, error.message, hint, error.code);
  }
  return error;
}
