// What `--json` prints is what docs/report.md says: every command is run for real, and every member name that it prints must stand in its row; what stands
// there is printed, but for what only other circumstances bring about.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Desk } from './desk.fixture.js';
import { RealVault, ROOT } from './real-vault.fixture.js';

const page = readFileSync(join(ROOT, 'docs/report.md'), 'utf8');

/** The words in backticks behind a command (or a member of the report) in the page's tables: `sessions[]` is sessions. */
function rowOf(name: string): string[] {
  const row = page
    .split('\n')
    .find((line) => line.startsWith('|') && (line.split('|')[1] ?? '').includes(`\`${name}\``));
  if (row === undefined) throw new Error(`docs/report.md has no row for ${name}`);
  const told = row.split('|').slice(2).join('|');
  return [...told.matchAll(/`([a-z0-9_]+)(?:\[\])?`/g)].map(([, word = '']) => word);
}

/** Members whose inside is an agent's, or has a table of its own. */
const WHOLE = new Set(['data', 'peer', 'report', 'error']);

/** The names of all members of a value, and its texts where they are single words: a row names values too (`shipped`). */
function wordsIn(value: unknown, names = new Set<string>(), values = new Set<string>()) {
  if (typeof value === 'string') values.add(value);
  else if (Array.isArray(value)) for (const one of value) wordsIn(one, names, values);
  else if (typeof value === 'object' && value !== null)
    for (const [name, inner] of Object.entries(value)) {
      names.add(name);
      if (!WHOLE.has(name)) wordsIn(inner, names, values);
    }
  return { names, values };
}

const printed = new Map<string, ReturnType<typeof wordsIn>>();
function saw(command: string, value: Record<string, unknown>): void {
  const before = printed.get(command);
  const { names, values } = wordsIn(value, before?.names, before?.values);
  names.delete('exit'); // the desk's own
  printed.set(command, { names, values });
}

let vault: RealVault;
let desk: Desk;
const reports: object[] = [];

beforeAll(async () => {
  vault = await RealVault.start();
  desk = new Desk();
  const nd7 = async (row: string, ...args: string[]): Promise<Record<string, unknown>> => {
    const value = await desk.json(...args);
    saw(row, value);
    return value;
  };
  const admin = async (row: string, ...args: string[]): Promise<Record<string, unknown>> => {
    const value = await vault.admin(...args);
    saw(row, value);
    return value;
  };
  const settings = join(desk.home, '..', 'settings.json');
  await nd7('nd7 doctor', 'doctor');
  await nd7('nd7 init', 'init', '--settings', settings, '--dry-run');
  await nd7('nd7 init', 'init', '--dry-run');
  await nd7('nd7 init', 'init', '--settings', settings, '--yes');
  await nd7('nd7 status', 'status');
  await nd7('nd7 enrol', 'enrol', vault.url, await vault.enrolmentToken());
  await desk.say('one', 'SessionStart', { source: 'startup' });
  await desk.call('one');
  await desk.say('one', 'PreToolUse', {
    tool_name: 'Write',
    tool_input: { content: 'x'.repeat(70_000), file_path: '.env', text: 'API_KEY=q8Zx81kLmNw04rTyUiOp' },
    tool_use_id: 'large',
  });
  await desk.untilShipped('one');
  await nd7('nd7 status', 'status');
  await nd7('nd7 ship', 'ship', 'one');
  await nd7('nd7 sessions', 'sessions');
  await nd7('nd7 log', 'log', 'one');
  for (const { seq, kind } of desk.entries('one'))
    if (seq === 0 || kind === 'tool.before') await nd7('nd7 show', 'show', 'one', String(seq), '--detached');
  const verified = await nd7('nd7 verify', 'verify', 'one', '--receipts');
  reports.push(verified['report'] as object);
  await nd7('nd7 receipt', 'receipt', 'one');
  await nd7('nd7 export', 'export', 'one', '--out', join(desk.home, '..', 'out'));
  const policy = join(desk.home, 'policy.jsonc');
  writeFileSync(policy, '{"nd7": 1, "files": {"read": {"deny": ["~/diary"]}, "write": {"allow": ["/opt"]}}}');
  await nd7('nd7 why', 'why', '~/diary');
  await nd7('nd7 why', 'why', 'example.com');
  await nd7('nd7 why', 'why', '$PATH');
  for (const kind of ['--listen', '--loopback']) await nd7('nd7 why', 'why', '8080', kind);
  await nd7('nd7 why', 'why', '/run/docker.sock', '--socket');
  await nd7('nd7 policy show', 'policy', 'show');
  await nd7('nd7 policy show', 'policy', 'explain');
  await nd7('nd7 policy diff', 'policy', 'diff');
  await nd7('nd7 policy check', 'policy', 'check', policy);
  await nd7('nd7 doctor', 'doctor');
  await desk.say('one', 'SessionEnd');
  await nd7('nd7 recorder', 'recorder'); // one runs already
  await nd7('nd7 recorder', 'recorder', '--sleep');
  await nd7('nd7 recorder', 'recorder', '--stop');
  await nd7('nd7 recorder', 'recorder', '--stop');
  // Recorded without a recorder, which would ship by itself: these segments are this command's.
  const payload = JSON.stringify({ session_id: 'three', hook_event_name: 'SessionStart', source: 'startup' });
  await desk.nd7(['hook', '--agent', 'claude-code', '--alone'], payload);
  await nd7('nd7 ship', 'ship', 'three');
  const log = join(desk.home, 'sessions/one/log.jsonl');
  writeFileSync(log, readFileSync(log, 'latin1').replace('"command":"make"', '"command":"cake"'), 'latin1');
  reports.push((await nd7('nd7 verify', 'verify', 'one'))['report'] as object);
  await nd7('nd7 verify --all', 'verify', '--all', '--receipts');

  await admin('nd7-vault migrate', 'migrate');
  await admin('nd7-vault check', 'check', '--team', 'acme');
  await admin('nd7-vault team create', 'team', 'create', 'other');
  await admin('nd7-vault team list', 'team', 'list');
  await admin('nd7-vault team new-sealing-key', 'team', 'new-sealing-key', '--team', 'other');
  await admin('nd7-vault team set', 'team', 'set', 'log', 'public', '--team', 'other');
  await admin('nd7-vault enrolment create', 'enrolment', 'create', '--team', 'other');
  const { reader } = await admin('nd7-vault reader create', 'reader', 'create', '--team', 'other');
  await admin('nd7-vault reader revoke', 'reader', 'revoke', String(reader), '--team', 'other');
  const { machines } = await admin('nd7-vault machine list', 'machine', 'list', '--team', 'acme');
  const [{ machine } = { machine: '' }] = machines as { machine: string }[];
  await admin('nd7-vault machine revoke', 'machine', 'revoke', machine, '--team', 'acme');
  await vault.kill(); // the signer is the service's own here
  await desk.call('two');
  await nd7('nd7 ship', 'ship', 'two');
  await nd7('nd7 uninstall', 'uninstall', '--dry-run');
  await nd7('nd7 uninstall', 'uninstall');
  await admin('nd7-vault signer adopt', 'signer', 'adopt', '--team', 'acme', '--by', `u_${'0'.repeat(32)}`);
  await admin('nd7-vault key rotate', 'key', 'rotate', '--team', 'acme');
  await admin('nd7-vault key retire', 'key', 'retire', '--team', 'acme');
});
afterAll(async () => {
  await desk.remove();
  await vault.stop();
});

/** What a row takes from others: `nd7 verify --all` has sessions as `nd7 verify` has them. */
const ALSO: Record<string, string[]> = {
  'nd7 verify --all': ['nd7 verify'],
  'nd7 show': ['nd7 log'],
  'nd7 status': ['nd7 ship'],
};
/** Members of format.md, "Detached values". */
const DETACHED = ['at', 'blake3', 'bytes', 'why', 'shown'];
/** Words of a row that are values, or that none of the circumstances above bring about. */
const ELSEWHERE: Record<string, string[]> = {
  'nd7 init': ['project', 'managed', 'shim_problem', 'there', 'foreign', 'closed'],
  'nd7 uninstall': ['error'],
  // What is open, how it ships and what went wrong depends on the moment.
  'nd7 status': [
    ...['agent_session', 'agent', 'head', 'sealed_to', 'ended', 'client_pid', 'last_time', 'pinned'],
    ...['interval_seconds', 'last', 'away', 'clock_ahead_seconds', 'failures', 'problem'],
    ...['kind', 'entry', 'text', 'time'],
  ],
  'nd7 verify --all': ['unread', 'message'],
  'nd7 show': ['log', 'missing', 'differs'],
  // Rules and their outcomes: docs/policy.md and its tests.
  'nd7 why': ['allowed', 'recorded', 'mediated'],
  'nd7 policy show': ['kind'],
  'nd7 policy check': ['asks'],
  'nd7 ship': ['pending', 'failed', 'code', 'text', 'retry_after_ms', 'continued_as'],
  'nd7-vault check': ['fault', 'at', 'what'],
};

it.each([
  'nd7 init',
  'nd7 uninstall',
  'nd7 status',
  'nd7 doctor',
  'nd7 recorder',
  'nd7 verify',
  'nd7 verify --all',
  'nd7 sessions',
  'nd7 log',
  'nd7 show',
  'nd7 export',
  'nd7 enrol',
  'nd7 ship',
  'nd7 receipt',
  'nd7 why',
  'nd7 policy show',
  'nd7 policy diff',
  'nd7 policy check',
  'nd7-vault migrate',
  'nd7-vault check',
  'nd7-vault team create',
  'nd7-vault team list',
  'nd7-vault team new-sealing-key',
  'nd7-vault team set',
  'nd7-vault enrolment create',
  'nd7-vault reader create',
  'nd7-vault reader revoke',
  'nd7-vault machine list',
  'nd7-vault machine revoke',
  'nd7-vault signer adopt',
  'nd7-vault key rotate',
  'nd7-vault key retire',
])('%s', (command) => {
  const own = rowOf(command);
  const told = new Set([...own, ...(ALSO[command] ?? []).flatMap(rowOf), ...(command === 'nd7 show' ? DETACHED : [])]);
  const { names = new Set<string>(), values = new Set<string>() } = printed.get(command) ?? {};
  expect({ command, untold: [...names].filter((name) => !told.has(name)) }).toEqual({ command, untold: [] });
  const elsewhere = new Set(ELSEWHERE[command]);
  expect({
    command,
    unseen: own.filter((word) => !names.has(word) && !values.has(word) && !elsewhere.has(word)),
  }).toEqual({
    command,
    unseen: [],
  });
});

it('every command that prints JSON has a row', async () => {
  const { stdout } = await desk.nd7(['complete', '--', '']);
  const commands = stdout.split('\n').flatMap((line) => /^([a-z]+)\t/.exec(line)?.[1] ?? []);
  expect(commands).toContain('verify');
  // What an agent reads, a shell's script, help.
  const others = ['hook', 'complete', 'help'];
  const rows = page.split('\n').map((line) => line.split('|')[1] ?? '');
  const isTold = (command: string): boolean => rows.some((row) => new RegExp(`\`nd7 ${command}\\b`).test(row));
  expect(commands.filter((command) => !others.includes(command) && !isTold(command))).toEqual([]);
});

it('the report has the members of its table', () => {
  for (const report of reports)
    for (const name of Object.keys(report)) expect(page).toMatch(new RegExp(`\`${name}(\\[\\])?\``));
  expect(reports).toHaveLength(2);
});
