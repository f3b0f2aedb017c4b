import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const NATIVE = fileURLToPath(new URL('../../../native/launch/', import.meta.url));

/** The launcher, built first where it is not; or why there is none. */
export async function findLauncher(): Promise<{ path: string } | { problem: string }> {
  const built = join(NATIVE, 'build', 'nd7-launch');
  if (existsSync(built)) return { path: built };
  const script = join(NATIVE, 'build.mjs');
  if (!existsSync(script)) return { problem: 'the launcher’s sources are not part of this installation' };
  const { buildLauncher } = (await import(script)) as { buildLauncher(): { launcher?: string; skipped?: string } };
  try {
    const { launcher, skipped } = buildLauncher();
    return launcher === undefined ? { problem: skipped ?? 'the launcher could not be built' } : { path: launcher };
  } catch (error) {
    return { problem: error instanceof Error ? error.message : String(error) };
  }
}
