import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { collectResults, resultFiles, unexpectedSkips } from './results.js';

let root: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'nd7-results-'));
});
afterEach(() => rmSync(root, { recursive: true }));

function project(path: string, testResults: unknown[]): void {
  mkdirSync(join(root, path), { recursive: true });
  writeFileSync(join(root, path, 'test-results.json'), JSON.stringify({ testResults }));
}

const suite = (name: string, ...statuses: string[]): unknown => ({
  name: join(root, name),
  status: statuses.includes('failed') ? 'failed' : 'passed',
  assertionResults: statuses.map((status, i) => ({ fullName: `case ${i}`, status })),
});

describe('the closing line of npm test', () => {
  it('adds up every project, and names what failed and what was skipped', () => {
    project('libs/a', [suite('libs/a/x.test.ts', 'passed', 'passed', 'pending')]);
    project('tests/b', [suite('tests/b/y.test.ts', 'passed', 'failed', 'todo')]);
    expect(resultFiles(root)).toHaveLength(2);
    expect(collectResults(root)).toEqual({
      passed: 3,
      failed: 1,
      suites: 2,
      failures: ['tests/b/y.test.ts: case 1'],
      skipped: ['libs/a/x.test.ts: case 2', 'tests/b/y.test.ts: case 2'],
    });
  });

  it('counts a file that did not load as a failure: it has no test that could fail', () => {
    project('apps/c', [
      { name: join(root, 'apps/c/z.test.ts'), status: 'failed', message: 'SyntaxError: x\nat y', assertionResults: [] },
    ]);
    expect(collectResults(root)).toMatchObject({
      passed: 0,
      failed: 1,
      failures: ['apps/c/z.test.ts: SyntaxError: x'],
    });
  });

  it('tells the skips that nothing expects, by the names that CI allows', () => {
    project('libs/a', [suite('libs/a/x.test.ts', 'passed', 'pending', 'pending')]);
    const results = collectResults(root);
    expect(unexpectedSkips(root, results)).toEqual(results.skipped); // without a list none is expected
    mkdirSync(join(root, '.ci'));
    writeFileSync(join(root, '.ci/expected-skips'), '# case 2 is not meant by a comment\n\ncase 1\n');
    expect(unexpectedSkips(root, results)).toEqual(['libs/a/x.test.ts: case 2']);
  });
});
