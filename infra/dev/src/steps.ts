// How `npm start` and `npm run tour` talk: numbered steps, one line each, colour only on a terminal.
import { styleText } from 'node:util';

const colour = process.stdout.isTTY === true && !process.env['NO_COLOR'];
type Style = Parameters<typeof styleText>[0];
export const paint = (style: Style, text: string): string => (colour ? styleText(style, text) : text);
export const say = (text = ''): void => void process.stdout.write(`${text}\n`);

// Who reads no further (`npm run tour | head`) ends nothing: what was begun is ended and put away in its order.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error;
});

/** Milliseconds as people read them. */
export function duration(ms: number): string {
  return ms < 1000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(1)} s`;
}

/** Runs one step and prints `✓ what: result (time)`; a failure is printed and thrown on. */
export async function step<T>(
  what: string,
  work: () => Promise<T>,
  result: (value: T) => string = () => '',
): Promise<T> {
  const start = performance.now();
  try {
    const value = await work();
    const text = result(value);
    say(
      `${paint('green', '✓')} ${what}${text === '' ? '' : `: ${text}`} ${paint('dim', `(${duration(performance.now() - start)})`)}`,
    );
    return value;
  } catch (error) {
    say(`${paint('red', '✗')} ${what}: ${error instanceof Error ? error.message : String(error)}`);
    throw new StepFailed(what, { cause: error });
  }
}

/** A step that failed and has said so; nothing more is to be printed. */
export class StepFailed extends Error {
  override name = 'StepFailed';
}
