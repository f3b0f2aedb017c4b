// Attempts on files: reading what is hidden, writing outside, names that others run or trust later.
import { attack, type Attack, type Does } from './attack.js';
import type { World } from './world.js';

const secret = (w: World): string | undefined => w.at('hidden', 'secret');
const outside = (w: World, name: string): string | undefined => w.at('outside', name);
const project = (w: World, name: string): string | undefined => w.at('project', name);
const changed = (name: string) => (w: World) => w.isChanged(name);
const made = (name: string) => (w: World) => w.isThere('outside', name);
const madeInProject = (name: string) => (w: World) => w.isThere('project', name);

/** Reading what is hidden: the secret lies in nd7's home, which no policy shows. */
const reading: readonly Attack[] = [
  attack('files.read', 'read-secret', 'read a file in a hidden folder', (w) => ['read', secret(w)], 'canary'),
  attack(
    'files.read',
    'read-by-proc-root',
    'read it through /proc/self/root',
    (w) => ['read', `/proc/self/root${secret(w)}`],
    'canary',
  ),
  attack(
    'files.read',
    'read-by-symlink',
    'read it by a symbolic link in the project',
    (w) => ['read-by-symlink', secret(w), project(w, 'symlink')],
    'canary',
  ),
  attack(
    'files.read',
    'read-by-hard-link',
    'read it by a hard link in the project',
    (w) => ['read-by-hard-link', secret(w), project(w, 'hard-link')],
    'canary',
  ),
  attack(
    'files.read',
    'read-by-handle',
    'open it by its file handle',
    (w) => ['native', w.probes, 'openhandle', secret(w), '/'],
    'canary',
  ),
];

/** Where Landlock cannot take a file out of a folder that is written in, and nobody is asked about reads. */
const UNASKED = /in writable folders they can be read/;

const writing: readonly Attack[] = [
  attack(
    'files.write',
    'write-new',
    'make a file in the home folder',
    (w) => ['write', outside(w, 'new')],
    made('new'),
  ),
  attack(
    'files.write',
    'write-existing',
    'write to a file there',
    (w) => ['write', outside(w, 'write')],
    changed('write'),
  ),
  attack(
    'files.write',
    'write-by-symlink',
    'write there by a symbolic link in the project',
    (w) => ['write-by-symlink', outside(w, 'folder'), project(w, 'folder-link'), 'new'],
    made('folder/new'),
  ),
  attack(
    'files.write',
    'truncate',
    'truncate a file there',
    (w) => ['truncate', outside(w, 'truncate')],
    changed('truncate'),
  ),
  attack('files.write', 'unlink', 'remove a file there', (w) => ['unlink', outside(w, 'unlink')], changed('unlink')),
  attack(
    'files.write',
    'rename',
    'rename a file there',
    (w) => ['rename', outside(w, 'rename'), outside(w, 'renamed')],
    changed('rename'),
  ),
  attack(
    'files.write',
    'rename-into-project',
    'move a file from there into the project',
    (w) => ['rename', outside(w, 'steal'), project(w, 'stolen')],
    changed('steal'),
  ),
  attack(
    'files.write',
    'link',
    'give a file there a second name',
    (w) => ['link', outside(w, 'link'), outside(w, 'linked')],
    made('linked'),
  ),
  attack(
    'files.write',
    'write-var-tmp',
    'make a file in /var/tmp',
    (w) => ['write-in-new-folder', w.at('varTmp', 'new')],
    (w) => w.isThere('varTmp', 'new'),
  ),
  attack(
    'files.metadata',
    'chmod',
    'change the mode of a file outside',
    (w) => ['chmod', outside(w, 'chmod')],
    changed('chmod'),
  ),
  attack(
    'files.metadata',
    'utime',
    'change the times of a file outside',
    (w) => ['utime', outside(w, 'utime')],
    changed('utime'),
  ),
  attack(
    'files.metadata',
    'setxattr',
    'give a file outside an attribute',
    (w) => ['native', w.probes, 'setxattr', outside(w, 'xattr')],
    'word',
  ),
  attack(
    'files.masks',
    'read-masked',
    'read .env in the project',
    (w) => ['read', project(w, '.env')],
    'canary',
    UNASKED,
  ),
  attack(
    'files.masks',
    'read-masked-by-hard-link',
    'read it by a hard link',
    (w) => ['read-by-hard-link', project(w, '.env'), project(w, 'env-link')],
    'canary',
    UNASKED,
  ),
  attack(
    'files.masks.host',
    'read-masked-late',
    'read a .env that a program outside makes during the session',
    (w) => ['read', project(w, 'late/.env')],
    'canary',
    /programs outside make during the session/,
  ),
];

/** Names that something outside runs or trusts later. A kernel without a supervisor says so in its manifest. */
const NO_LATE_NAMES = /do not exist at the start can be made/;
const leaf = (name: string, tried: string, does: Does, path: string, isLate = true): Attack =>
  attack('files.leaves', name, tried, does, madeInProject(path), isLate ? NO_LATE_NAMES : undefined);
const leaves: readonly Attack[] = [
  attack(
    'files.leaves',
    'write-agent-settings',
    'write to .claude/settings.json in the project',
    (w) => ['write-and-rename', project(w, '.claude/own'), project(w, '.claude/settings.json')],
    (w) => w.isThere('project', '.claude/own') || w.isPayload('.claude/settings.json'),
  ),
  leaf(
    'new-agent-settings',
    'make .codex/config.toml',
    (w) => ['write-in-new-folder', project(w, 'new/.codex/config.toml')],
    'new/.codex/config.toml',
  ),
  leaf('new-mcp', 'make .mcp.json', (w) => ['write', project(w, '.mcp.json')], '.mcp.json'),
  leaf(
    'new-editor-tasks',
    'make .vscode/tasks.json',
    (w) => ['write-in-new-folder', project(w, '.vscode/tasks.json')],
    '.vscode/tasks.json',
  ),
  leaf('new-envrc', 'make .envrc', (w) => ['write', project(w, '.envrc')], '.envrc'),
  leaf(
    'rename-onto-name',
    'make a file and rename it to .mcp.json',
    (w) => ['write-and-rename', project(w, 'own.json'), project(w, 'late/.mcp.json')],
    'late/.mcp.json',
  ),
  leaf(
    'new-git-hook',
    'make a hook in a repository',
    (w) => ['write', project(w, 'repository/.git/hooks/pre-commit')],
    'repository/.git/hooks/pre-commit',
    false,
  ),
  leaf(
    'git-hook-by-hard-link',
    'link a file to the name of a hook',
    (w) => ['write-and-link', project(w, 'own.sh'), project(w, 'linked/.git/hooks/post-merge')],
    'linked/.git/hooks/post-merge',
    false,
  ),
  leaf(
    'git-hook-in-moved',
    'make a hook while the repository has another name',
    (w) => ['write-in-moved', project(w, 'moved'), '.git/hooks/post-checkout'],
    'moved/.git/hooks/post-checkout',
  ),
];

const places: readonly Attack[] = [
  attack(
    'files.exec',
    'run-in-tmp',
    'run a program that was copied into the temporary folder',
    (w) => (w.probes === undefined ? ['native', undefined] : ['run-copy', w.probes, w.copyTo]),
    'word',
  ),
  attack(
    'tmp.private',
    'read-tmp',
    'read a file in the machine’s /tmp',
    (w) => ['read', w.at('tmp', 'secret')],
    'canary',
    /./,
  ),
  attack(
    'tmp.private',
    'write-tmp',
    'make a file in it',
    (w) => ['write-in-new-folder', w.at('tmp', 'new')],
    (w) => w.isThere('tmp', 'new'),
    /./,
  ),
  attack('ipc.memory', 'read-shm', 'read a file in /dev/shm', (w) => ['read', w.at('shm', 'secret')], 'canary'),
  attack(
    'ipc.memory',
    'write-shm',
    'make a file in it',
    (w) => ['write-in-new-folder', w.at('shm', 'new')],
    (w) => w.isThere('shm', 'new'),
  ),
];

export const FILES: readonly Attack[] = [...reading, ...writing, ...leaves, ...places];
