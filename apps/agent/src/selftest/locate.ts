import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const NATIVE = fileURLToPath(new URL('../../../../native/probes/', import.meta.url));

/** The program of the probes, built first where it is not; undefined where it cannot be. */
export async function findProbes(): Promise<string | undefined> {
  const built = join(NATIVE, 'build', 'nd7-probes');
  if (existsSync(built)) return built;
  const script = join(NATIVE, 'build.mjs');
  if (!existsSync(script)) return undefined;
  const { buildProbes } = (await import(script)) as { buildProbes(): { probes?: string } };
  try {
    return buildProbes().probes;
  } catch {
    return undefined;
  }
}
