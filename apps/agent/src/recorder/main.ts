import { runRecorder } from './run.js';

/** The whole of `nd7 recorder`: exit code 0 when it served or another one does, 1 with a message when the home cannot be used. */
export async function main(home: string): Promise<number> {
  try {
    await runRecorder(home);
    return 0;
  } catch (error) {
    process.stderr.write(`nd7: ${error instanceof Error ? error.message : String(error)}\n`);
    return 1;
  }
}
