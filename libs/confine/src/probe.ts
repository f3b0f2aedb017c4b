import { spawnSync } from 'node:child_process';
import type { PlanTier } from './plan.js';

/** What this kernel gives to this user. Each step was tried, not read off a version. */
export interface KernelFacts {
  kernel: string;
  /** Landlock's ABI, 0 for none. */
  landlock: number;
  filter: boolean;
  notify: boolean;
  /** Whether a process looks into those below it, on which tier T2 rests: `ok`, or the call that failed and its errno. */
  looking: string;
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
    looking: facts.get('looking') ?? 'not tried',
    namespaces: facts.get('namespaces') ?? 'not tried',
    namespacesAsRoot: facts.get('namespaces-as-root'),
  };
}

/** The tiers that this machine gives, the strongest first, and why it does not give the others. T3 is taken by who asks for it alone. */
export function tiersOf(facts: KernelFacts): { given: PlanTier[]; refused: { tier: PlanTier; why: string }[] } {
  const base =
    facts.landlock === 0 ? 'the kernel has no Landlock' : facts.filter ? undefined : 'the kernel has no call filters';
  const spaces = facts.namespaces === 'ok' || facts.namespacesAsRoot === 'ok';
  const reasons: Record<PlanTier, string | undefined> = {
    T1: base ?? (spaces ? undefined : `namespaces are refused (${facts.namespaces})`),
    T2:
      base ??
      (facts.notify ? undefined : 'no supervisor can answer calls') ??
      (facts.looking === 'ok' ? undefined : `nobody may look into other processes (${facts.looking})`),
    T3: base,
  };
  const all = Object.entries(reasons) as [PlanTier, string | undefined][];
  return {
    given: all.flatMap(([tier, why]) => (why === undefined ? [tier] : [])),
    refused: all.flatMap(([tier, why]) => (why === undefined ? [] : [{ tier, why }])),
  };
}
