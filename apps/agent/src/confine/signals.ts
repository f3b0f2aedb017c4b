import { constants } from 'node:os';
import { isatty } from 'node:tty';
import type { Ended } from '@nd7/confine';

/** Signals that others send to this process and mean the program. */
const PASSED = ['SIGTERM', 'SIGHUP', 'SIGUSR1', 'SIGUSR2'] as const;
/** The terminal sends these to the whole process group; a process sends them to this one alone. */
const FROM_TERMINAL = ['SIGINT', 'SIGQUIT'] as const;

/** Passes signals on while the program runs; the terminal's own are left to it. Returns what undoes that. */
export function passSignals(pass: (name: NodeJS.Signals) => void): () => void {
  const hasTerminal = [0, 1, 2].some((fd) => isatty(fd));
  const handlers = new Map<NodeJS.Signals, () => void>([
    ...PASSED.map((name): [NodeJS.Signals, () => void] => [name, () => pass(name)]),
    ...FROM_TERMINAL.map((name): [NodeJS.Signals, () => void] => [name, () => (hasTerminal ? undefined : pass(name))]),
  ]);
  for (const [name, handler] of handlers) process.on(name, handler);
  return () => {
    for (const [name, handler] of handlers) process.removeListener(name, handler);
  };
}

/** Ends this process as the program ended, so that a shell sees the same. */
export function endAs({ code, signal }: Ended): never {
  if (signal !== null) {
    const number = constants.signals[signal];
    // Those that would leave a core file of this process end it with the shell's number for them.
    if (['SIGTERM', 'SIGINT', 'SIGHUP', 'SIGKILL', 'SIGPIPE', 'SIGUSR1', 'SIGUSR2', 'SIGALRM'].includes(signal))
      process.kill(process.pid, signal);
    process.exit(128 + number);
  }
  process.exit(code ?? 1);
}
