// Adds up what jest wrote: one test-results.json per project (an Nx output, so it is there for cached runs too).
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';

export interface Results {
  passed: number;
  failed: number;
  suites: number;
  /** Full names of what failed, with the file. */
  failures: string[];
  /** Full names of skipped tests, with the file. */
  skipped: string[];
}

/** The parts of jest's --json report that count. */
interface JestReport {
  testResults: {
    name: string;
    status: string;
    message?: string;
    assertionResults: { fullName: string; status: string }[];
  }[];
}

/** Every test-results.json of the workspace's projects. */
export function resultFiles(root: string): string[] {
  const found: string[] = [];
  for (const folder of ['apps', 'libs', 'tests', 'native', 'tools', 'infra']) {
    if (!existsSync(join(root, folder))) continue;
    for (const project of readdirSync(join(root, folder))) {
      const file = join(root, folder, project, 'test-results.json');
      if (existsSync(file)) found.push(file);
    }
  }
  return found;
}

export function collectResults(root: string): Results {
  const results: Results = { passed: 0, failed: 0, suites: 0, failures: [], skipped: [] };
  for (const file of resultFiles(root)) {
    const report = JSON.parse(readFileSync(file, 'utf8')) as JestReport;
    for (const suite of report.testResults) {
      results.suites += 1;
      const where = relative(root, suite.name);
      if (suite.assertionResults.length === 0 && suite.status === 'failed') {
        results.failed += 1; // the file itself did not load
        results.failures.push(`${where}: ${(suite.message ?? 'did not start').split('\n')[0] ?? ''}`);
      }
      for (const test of suite.assertionResults) {
        if (test.status === 'passed') results.passed += 1;
        else if (test.status === 'failed') {
          results.failed += 1;
          results.failures.push(`${where}: ${test.fullName}`);
        } else results.skipped.push(`${where}: ${test.fullName}`);
      }
    }
  }
  return results;
}

/** Skips whose name no line of .ci/expected-skips is part of. */
export function unexpectedSkips(root: string, results: Results): string[] {
  const path = join(root, '.ci/expected-skips');
  const expected = existsSync(path)
    ? readFileSync(path, 'utf8')
        .split('\n')
        .filter((line) => line !== '' && !line.startsWith('#'))
    : [];
  return results.skipped.filter((name) => !expected.some((line) => name.includes(line)));
}
