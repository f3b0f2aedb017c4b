import { spawnSync } from 'node:child_process';

/** What this kernel gives to this user. Each step was tried, not read off a version. */
export interface KernelFacts {
  kernel: string;
  /** Landlock's ABI, 0 for none. */
  landlock: number;
  filter: boolean;
  notify: boolean;
  /** `ok`, or the step that failed and why. */
  namespaces: string;
  /** The same without a user namespace, as root; undefined for other users. */
  namespacesAsRoot: string | undefined;
}

/** Runs the launcher's probe. Throws where the launcher itself cannot run. */
export function probeKernel(launcher: string): KernelFacts {
  const run = spawnSync(launcher, ['--probe'], { encoding: 'utf8', env: {}, cwd: '/', timeout: 10_000 });
  if (run.error !== undefined || run.status !== 0)
    throw new Error(`the launcher's probe failed: ${run.error?.message ?? run.stderr.trim()}`);
  return parseProbe(run.stdout);
}

export function parseProbe(text: string): KernelFacts {
  const facts = new Map(text.split('\n').map((line) => line.split('\t') as [string, string]));
  return {
    kernel: facts.get('kernel') ?? 'unknown',
    landlock: Number(facts.get('landlock') ?? 0),
    filter: facts.get('filter') === 'yes',
    notify: facts.get('notify') === 'yes',
    namespaces: facts.get('namespaces') ?? 'not tried',
    namespacesAsRoot: facts.get('namespaces-as-root'),
  };
}
