import { adviceFor, namespaceRefusal } from './advice.js';
import { parseProbe, tiersOf } from './probe.js';
import { keepsSignals } from './landlock.js';

describe('what to do on a system that refuses', () => {
  it.each([
    ['kernel.apparmor_restrict_unprivileged_userns', '1', /AppArmor/],
    ['kernel.unprivileged_userns_clone', '0', /unprivileged_userns_clone=1/],
    ['user.max_user_namespaces', '0', /max_user_namespaces=15000/],
  ])('is told by %s = %s', (name, value, advice) => {
    expect(namespaceRefusal((asked) => (asked === name ? value : undefined))).toMatch(advice);
  });

  it.each([
    'launcher',
    'plan',
    'streams',
    'trust',
    'namespaces',
    'maps',
    'mounts',
    'loopback',
    'proc',
    'landlock',
    'self-test',
    'session',
    'view',
    'filter',
  ])('is told for the step %s, with the cause', (step) => {
    const { message, hint } = adviceFor({ step, error: 1, what: '/some/path' });
    expect(message).toContain('/some/path');
    expect(hint).toMatch(/\.$/);
  });
});

it('reads what the probe says, and takes what it does not say for absent', () => {
  expect(
    parseProbe(
      'kernel\t6.8.0 x86_64\nlandlock\t4\nfilter\tyes\nnotify\tno\nnamespaces\tmaps: /proc/self/uid_map: Operation not permitted\n',
    ),
  ).toEqual({
    kernel: '6.8.0 x86_64',
    landlock: 4,
    looking: 'not tried',
    filter: true,
    notify: false,
    namespaces: 'maps: /proc/self/uid_map: Operation not permitted',
    namespacesAsRoot: undefined,
  });
  expect(parseProbe('')).toMatchObject({ landlock: 0, filter: false, notify: false, namespaces: 'not tried' });
});

it.each([
  ['6.12.0', true],
  ['6.18.44-amd64', true],
  ['7.0-rc1', true],
  ['10.1.2', true],
  ['6.11.9', false],
  ['6.8.0-31-generic', false],
  ['5.14.0-427.el9.x86_64', false],
  ['nonsense', false],
])('Landlock of kernel %s keeps signals inside: %s', (kernel, expected) => {
  expect(keepsSignals(kernel)).toBe(expected);
});

it.each<[string, Parameters<typeof parseProbe>[0], string[], RegExp[]]>([
  ['all there is', 'landlock\t7\nfilter\tyes\nnotify\tyes\nlooking\tok\nnamespaces\tok\n', ['T1', 'T2', 'T3'], []],
  [
    'namespaces refused, as AppArmor does',
    'landlock\t4\nfilter\tyes\nnotify\tyes\nlooking\tok\nnamespaces\tmaps: EPERM\n',
    ['T2', 'T3'],
    [/namespaces are refused \(maps: EPERM\)/],
  ],
  [
    'namespaces and looking refused, as YAMA and containers do',
    'landlock\t4\nfilter\tyes\nnotify\tyes\nlooking\tpidfd_getfd 1\nnamespaces\tclone: EPERM\n',
    ['T3'],
    [/namespaces/, /nobody may look into other processes \(pidfd_getfd 1\)/],
  ],
  [
    'no Landlock',
    'landlock\t0\nfilter\tyes\nnotify\tyes\nlooking\tok\nnamespaces\tok\n',
    [],
    [/no Landlock/, /no Landlock/, /no Landlock/],
  ],
])('tells the tiers of a machine: %s', (_what, said, given, refused) => {
  const tiers = tiersOf(parseProbe(said));
  expect(tiers.given).toEqual(given);
  expect(tiers.refused.map(({ why }) => why)).toEqual(
    refused.map((pattern) => expect.stringMatching(pattern) as string),
  );
});
