import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Counts } from './selftest.js';

/** The result of one self-test: what it is true of, when it was, and what came out. */
export interface Kept {
  version: string;
  kernel: string;
  ruleset: string;
  /** Milliseconds since 1970. */
  time: number;
  counts: Counts;
}

const FILE = 'selftests.json';
/** One for each kernel, policy and version; the oldest go. */
const MOST = 50;

/** Keeps a result for `nd7 doctor`, in place of an earlier one of the same kernel, policy and version. */
export function keep(home: string, result: Kept): void {
  const others = kept(home).filter((one) => !isSame(one, result));
  const path = join(home, FILE);
  const own = `${path}.${process.pid}`;
  writeFileSync(own, JSON.stringify([result, ...others].slice(0, MOST)), { mode: 0o600 });
  renameSync(own, path);
}

/** All results, the newest first; none where nothing readable is kept. */
export function kept(home: string): Kept[] {
  try {
    const all = JSON.parse(readFileSync(join(home, FILE), 'utf8')) as unknown;
    return Array.isArray(all) ? all.filter(isKept) : [];
  } catch {
    return [];
  }
}

/** Whether two results are of the same kernel, policy and version. */
export function isSame(one: Omit<Kept, 'time' | 'counts'>, other: Omit<Kept, 'time' | 'counts'>): boolean {
  return one.version === other.version && one.kernel === other.kernel && one.ruleset === other.ruleset;
}

function isKept(value: unknown): value is Kept {
  const one = (value ?? {}) as Partial<Kept>;
  const texts = [one.version, one.kernel, one.ruleset];
  return (
    texts.every((text) => typeof text === 'string') &&
    typeof one.time === 'number' &&
    typeof one.counts?.held === 'number' &&
    typeof one.counts['not-held'] === 'number'
  );
}
