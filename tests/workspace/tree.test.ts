// What must be true of the tree as a whole.
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';

const root = join(import.meta.dirname, '..', '..');
const files = execFileSync('git', ['ls-files', '-co', '--exclude-standard'], {
  cwd: root,
  encoding: 'utf8',
  maxBuffer: 1 << 26,
})
  .split('\n')
  .filter((file) => file !== '' && existsSync(join(root, file)));
const DATA = /^tests\/(vectors|captures|hostile|frozen|fake-api|reference)\//;
const text = (file: string): string => readFileSync(join(root, file), 'utf8');
const ours = files.filter(
  (file) =>
    !DATA.test(file) && /\.(ts|tsx|mjs|js|c|h|sql|css|html|md|json|yml|sh|py|service|Dockerfile)$|^\.ci\//.test(file),
);

describe('the tree', () => {
  it('stands alone: nothing in it names a folder outside', () => {
    const outside = '../' + 'shared';
    expect(ours.filter((file) => file !== 'tests/workspace/tree.test.ts' && text(file).includes(outside))).toEqual([]);
  });

  it('builds a native part anew when what it takes from another one has changed', () => {
    const missing = files
      .filter((file) => /^native\/[^/]+\/build\.mjs$/.test(file))
      .flatMap((file) => {
        const { targets } = JSON.parse(text(join(dirname(file), 'project.json'))) as {
          targets: { build: { inputs: string[] } };
        };
        const taken = [...text(file).matchAll(/'\.\.\/([^/']+(?:\/|\.mjs'))/g)].map(([, name = '']) =>
          name.replace("'", ''),
        );
        return taken
          .filter((name) => !targets.build.inputs.some((input) => input.includes(`native/${name}`)))
          .map((name) => `${file}: native/${name}`);
      });
    expect(missing).toEqual([]);
  });

  it('has a lock file free of hosts', () => {
    expect(text('package-lock.json')).not.toMatch(/https?:\/\/[^"]*\.tgz/);
  });

  it('has no file or folder whose name says nothing', () => {
    expect(
      files.filter((file) => !DATA.test(file) && /(^|\/)(utils?|helpers?|common|misc|shared)(\.|\/)/i.test(file)),
    ).toEqual([]);
  });

  it('has no test that is switched off or runs alone', () => {
    const off = /\b(it|test|describe)\.(only|skip)\(|\bx(it|describe)\(/;
    const tests = ours.filter((file) => file.endsWith('.test.ts'));
    expect(
      tests.filter(
        (file) =>
          off.test(text(file).replaceAll(/ \? (it|describe) : \1\.skip/g, '')) && !/skip by name/.test(text(file)),
      ),
    ).toEqual([]);
  });

  it('has nothing left to do in its sources', () => {
    const sources = ours.filter(
      (file) => /\.(ts|tsx|c|h|sql|css|mjs)$/.test(file) && !file.startsWith('tests/workspace/'),
    );
    expect(sources.filter((file) => /\b(TODO|FIXME|XXX|HACK)\b/.test(text(file)))).toEqual([]);
  });

  it('has one decision a number', () => {
    const pages = files.filter((file) => /^docs\/adr\/\d/.test(file));
    const numbers = pages.map((file) => file.slice('docs/adr/'.length).split('-', 1)[0]);
    expect(numbers).toEqual([...new Set(numbers)]);
    for (const [i, file] of pages.entries()) expect(text(file)).toMatch(new RegExp(`^# ${numbers[i] ?? ''} · `));
  });

  it('has documents whose links lead somewhere', () => {
    const broken: string[] = [];
    for (const file of files.filter((name) => name.endsWith('.md') && !DATA.test(name))) {
      for (const [, target = ''] of text(file).matchAll(/\]\(([^)#]+)(?:#[^)]*)?\)/g)) {
        if (/^[a-z]+:/.test(target)) continue;
        if (!existsSync(join(root, normalize(join(dirname(file), target))))) broken.push(`${file}: ${target}`);
      }
      // Paths in backticks are links too: `docs/format.md`.
      for (const [, target = ''] of text(file).matchAll(
        /`((?:apps|libs|docs|infra|native|tests|tools)\/[A-Za-z0-9_./-]+\.(?:md|py|ts|mjs|c|sql))`/g,
      )) {
        if (!existsSync(join(root, target))) broken.push(`${file}: ${target}`);
      }
    }
    expect(broken).toEqual([]);
  });

  it('is drawn whole: docs/architecture.md has a row for each lib and names each program', () => {
    const page = text('docs/architecture.md');
    const projects = files.flatMap((file) => /^((?:libs|apps|native)\/[^/]+)\//.exec(file)?.[1] ?? []);
    const untold = [...new Set(projects)].filter(
      (project) => !page.includes(project.startsWith('libs/') ? `| \`${project.slice(5)}\` |` : `\`${project}\``),
    );
    expect(untold).toEqual([]);
  });

  it('keeps every project small enough to read: source files stop at 500 lines', () => {
    const sources = files.filter(
      (file) =>
        /^(apps|libs|native|infra|tools)\/.*\.(ts|tsx|c|mjs|sql|css)$/.test(file) && !file.includes('.generated.'),
    );
    const long = sources
      .map((file) => ({ file, lines: text(file).split('\n').length }))
      .filter(({ lines }) => lines > 501);
    expect(long).toEqual([]);
  });
});

describe('the words', () => {
  // Words of the glossary's last column that would mislead in a name people meet: routes, metrics, commands.
  const avoided = [
    'plugin',
    'conversation',
    'upload',
    'ack',
    'sth',
    'notary',
    'genesis-seed',
    'registration',
    'redaction',
  ];

  it('of the glossary are all there, and those it says not to say stand in no route, metric or command', () => {
    expect(
      text('docs/glossary.md')
        .split('\n')
        .filter((line) => line.startsWith('| ')).length,
    ).toBeGreaterThan(30);
    const names = [
      ...text('libs/vault-api/src/routes.ts').matchAll(/'(\/[a-z0-9/:{}_.*-]+)'/g),
      ...text('apps/vault/src/health/metrics.ts').matchAll(/name: '([a-z0-9_]+)'/g),
      ...files
        .filter((file) => file.startsWith('apps/agent/src/commands/'))
        .flatMap((file) => [...text(file).matchAll(/\.command\('([a-z-]+)/g)]),
    ].map((match) => match[1] ?? '');
    expect(names.length).toBeGreaterThan(40);
    expect(names.filter((name) => avoided.some((word) => name.split(/[^a-z]+/).includes(word)))).toEqual([]);
  });
});

it('what a test starts has no colours that nobody asked for: nx and jest ask all their children', () => {
  const said = execFileSync(process.execPath, ['-e', 'console.log(7)'], { encoding: 'utf8' });
  expect([process.env['FORCE_COLOR'], said]).toEqual([undefined, '7\n']);
});
