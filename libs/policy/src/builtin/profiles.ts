import type { PolicyDocument } from '../document.js';
import { REFUSED, RECORDED, type ProtectedNames } from './protected.js';
import { DOOR_VARIABLES, EXAMPLES, SECRET_NAMES, SECRET_VARIABLES, SECRETS } from './secrets.js';
import { TOOLCHAINS } from './toolchains.js';

const names = (groups: readonly ProtectedNames[]): string[] => groups.flatMap((group) => [...group.names]);

/** Devices that any program may need; all others are hidden. */
const DEVICES = [
  'null',
  'zero',
  'full',
  'random',
  'urandom',
  'tty',
  'ptmx',
  'pts',
  'shm',
  'fd',
  'stdin',
  'stdout',
  'stderr',
  'console',
].map((name) => `/dev/${name}`);

/** Below every profile: what is hidden, so that a profile or pack that says otherwise of the same path is the nearer one. */
const secrets: PolicyDocument = {
  nd7: 1,
  files: { read: { deny: ['/root', '/home', '/Users', '/dev', '/run', ...SECRETS] } },
  masks: SECRET_NAMES.map((pattern) => ({ pattern, under: ['.', '~'], except: [...EXAMPLES], exceptTracked: true })),
  environment: { unset: [...SECRET_VARIABLES, ...DOOR_VARIABLES] },
};

/** Read all but secrets, write the project, run anything that was there before. No network. */
const offline: PolicyDocument = {
  nd7: 1,
  extends: ['secrets'],
  files: {
    read: { allow: ['/', '~', '.', '/run/nd7', '/run/current-system', '/run/wrappers', '/run/opengl-driver'] },
    write: { allow: ['.', '$TMP', ...DEVICES], deny: ['/'] },
    exec: { allow: ['/', '.'], deny: ['$TMP', '/dev', '/proc', '/sys', '/var/tmp'] },
  },
  protect: {
    refuse: names(REFUSED),
    record: names(RECORDED),
    mediate: [
      { name: 'git:config', by: 'git-config' },
      { name: 'git:config.worktree', by: 'git-config' },
      { name: 'git:commondir', by: 'git-pointer' },
      { name: 'git:gitdir', by: 'git-pointer' },
      // As a file it says where the git directory is; as a folder it is one, and what is in it has its own rules.
      { name: '.git', by: 'git-pointer' },
    ],
  },
  environment: {
    pass: ['*'],
    // Without templates `git init` and `git clone` make no hooks, which would be refused.
    set: { TMPDIR: '$TMP', TMP: '$TMP', TEMP: '$TMP', GIT_TEMPLATE_DIR: '' },
  },
  privateTmp: true,
  patterns: 'names',
  weakestTier: 'T2',
  require: [
    'files.write',
    'files.read',
    'files.leaves',
    'network.proxy',
    'network.protocols',
    'processes.signal',
    'processes.inspect',
    'terminal.input',
    'privilege.none',
  ],
  recording: 'required',
};

export const PROFILES: Readonly<Record<string, PolicyDocument>> = {
  secrets,
  offline,
  default: { nd7: 1, extends: ['offline', ...Object.keys(TOOLCHAINS), 'github', 'gitlab'] },
  review: { nd7: 1, extends: ['default'], files: { write: { deny: ['.'] } } },
};

/** Packs of forges: git over https and ssh. */
export const FORGES: Readonly<Record<string, PolicyDocument>> = {
  github: {
    nd7: 1,
    files: { read: { allow: ['~/.ssh/known_hosts', '~/.ssh/config'] } },
    network: {
      allow: [
        'github.com',
        'api.github.com',
        'codeload.github.com',
        'raw.githubusercontent.com',
        'objects.githubusercontent.com',
        'release-assets.githubusercontent.com',
        { host: 'github.com:22', raw: true },
      ],
    },
  },
  gitlab: {
    nd7: 1,
    files: { read: { allow: ['~/.ssh/known_hosts', '~/.ssh/config'] } },
    network: { allow: ['gitlab.com', { host: 'gitlab.com:22', raw: true }] },
  },
};
