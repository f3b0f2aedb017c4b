import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { parse as parseJsonc } from 'jsonc-parser';
import {
  attachedFiles,
  CLAUDE_EVENTS,
  diffLines,
  findClaudeHooks,
  HooksError,
  installClaudeCode,
  isNd7Handler,
  planClaudeCode,
  settingsValue,
  uninstallClaudeCode,
} from './index.js';
import { addRegistrations, removeRegistrations } from './settings-edit.js';
import { claudeRegistrations } from './install-claude.js';

const hook = { command: '/home/dev/.nd7/bin/nd7-shim', args: ['hook', '--agent', 'claude-code'] };
const wanted = claudeRegistrations(hook);
let folder: string;
let path: string;
let home: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'nd7-settings-'));
  path = join(folder, '.claude', 'settings.json');
  home = join(folder, '.nd7');
  mkdirSync(join(folder, '.claude'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const add = (text: string) => addRegistrations(text, wanted, isNd7Handler, 'x');
const remove = (text: string, original?: string) => removeRegistrations(text, isNd7Handler, 'x', original);
const install = () => installClaudeCode({ settingsPath: path, hook, home });
const uninstall = () => uninstallClaudeCode({ settingsPath: path, home });

/** JSON with comments, trailing commas, any white space, any line end; sometimes with hooks of others in it. */
const space = fc.constantFrom('', ' ', '\n', '\n  ', '\r\n\t', ' // note\n', ' /* a, "b" } */ ');
const group = fc.constantFrom<unknown>(
  { hooks: [{ type: 'command', command: 'other' }] },
  {
    matcher: 'Bash',
    hooks: [
      { type: 'command', command: 'rtk', args: ['hook'] },
      { type: 'http', url: 'http://127.0.0.1:1' },
    ],
  },
  { matcher: '', hooks: [] },
);
const hooks = fc.dictionary(
  fc.constantFrom('PreToolUse', 'Stop', 'SessionEnd', 'WorktreeCreate', 'Custom'),
  fc.array(group, { maxLength: 3 }),
);
const value = fc.oneof(
  fc
    .dictionary(fc.oneof(fc.constantFrom('env', 'permissions', 'model', '', '"', 'ü'), fc.string()), fc.jsonValue())
    .map((rest) => ({ ...rest }) as Record<string, unknown>),
  fc
    .tuple(fc.dictionary(fc.string(), fc.jsonValue()), hooks)
    .map(([rest, own]) => ({ ...rest, hooks: own }) as Record<string, unknown>),
);
const jsonc = fc
  .tuple(value, fc.infiniteStream(space), fc.boolean(), fc.boolean())
  .map(([object, spaces, trailing, bom]) => {
    delete object['__proto__'];
    const next = () => spaces.next().value as string;
    const print = (one: unknown): string => {
      if (Array.isArray(one))
        return `[${next()}${one.map(print).join(`${next()},${next()}`)}${trailing && one.length > 0 ? ',' : ''}${next()}]`;
      if (typeof one === 'object' && one !== null) {
        const members = Object.entries(one).map(
          ([key, inner]) => `${JSON.stringify(key)}${next()}:${next()}${print(inner)}`,
        );
        return `{${next()}${members.join(`${next()},${next()}`)}${trailing && members.length > 0 ? `${next()},` : ''}${next()}}`;
      }
      return JSON.stringify(one);
    };
    return `${bom ? '\uFEFF' : ''}${next()}${print(object)}${next()}`;
  });
/** What is left of a text when what was inserted is taken out again, in order. */
const isSubsequence = (part: string, whole: string) => {
  let at = 0;
  for (const char of whole) if (part[at] === char) at++;
  return at === part.length || [...part].length === 0;
};

describe('settings files', () => {
  it('of any form keep every character, get every event once, and twice is once', () => {
    fc.assert(
      fc.property(jsonc, (text) => {
        const after = add(text);
        expect(isSubsequence(text, after)).toBe(true);
        expect(add(after)).toBe(after);
        const read = settingsValue(after) as { hooks: Record<string, { hooks: unknown[] }[]> };
        for (const [event, { register }] of Object.entries(CLAUDE_EVENTS)) {
          const ours = (read.hooks[event] ?? []).flatMap((one) => one.hooks).filter(isNd7Handler);
          expect([event, ours.length]).toEqual([event, register ? 1 : 0]);
        }
        // The rest means what it meant.
        expect(settingsValue(remove(after, text))).toEqual(settingsValue(text));
      }),
      { numRuns: 400 },
    );
  });

  it('of any form come back byte for byte', () => {
    fc.assert(
      fc.property(jsonc, (text) => {
        writeFileSync(path, text);
        install();
        expect(uninstall()).toMatchObject({ restored: 'exact' });
        expect(readFileSync(path, 'utf8')).toBe(text);
      }),
      { numRuns: 200 },
    );
  });

  it('edited by somebody else in between lose only nd7’s entries', () => {
    fc.assert(
      fc.property(jsonc, (text) => {
        writeFileSync(path, text);
        const after = install().after ?? '';
        const edited = after.replace(/\}(?=[^}]*$)/s, (end) => end) + '\n';
        writeFileSync(path, edited);
        expect(uninstall()).toMatchObject({ restored: 'entries-removed' });
        expect(settingsValue(readFileSync(path, 'utf8'))).toEqual(settingsValue(text));
      }),
      { numRuns: 100 },
    );
  });

  it.each([
    '{"a": 1}',
    '{\n  "a": 1\n}\n',
    '{\r\n\t"a": {"b": []}\r\n}',
    '{\n  "hooks": {\n    "Stop": [\n      {\n        "hooks": []\n      }\n    ]\n  }\n}',
  ])('come back byte for byte without nd7’s memory too: %j', (text) => expect(remove(add(text))).toBe(text));

  it.each([
    '{\n  "hooks": {\n    "Stop": [ /* none yet */ ]\n  }\n}\n',
    '{\n  "hooks": {\n    "Stop": [ // none yet\n    ]\n  }\n}\n',
    '{\n  "hooks": {\n    "Stop": [\n      // none yet\n    ],\n    "SessionEnd": [/**/]\n  }\n}\n',
    '{"hooks": {"Stop": [ /* none yet */ ]}}',
  ])('whose lists hold a comment only keep it on its line: %j', (text) => expect(remove(add(text), text)).toBe(text));

  it('that cannot be given back stay attached: a recorder goes on watching them', () => {
    writeFileSync(path, '{"model": "opus"}');
    install();
    const attached = readFileSync(path, 'utf8');
    // What would be the new file cannot be made: a folder bears its name.
    mkdirSync(join(folder, '.claude', `.settings.json.nd7-${process.pid}`));
    expect(() => uninstall()).toThrow(HooksError);
    expect(readFileSync(path, 'utf8')).toBe(attached);
    expect(attachedFiles(home)).toEqual([path]);
    rmSync(join(folder, '.claude', `.settings.json.nd7-${process.pid}`), { recursive: true });
    expect(uninstall()).toMatchObject({ restored: 'exact' });
    expect(attachedFiles(home)).toEqual([]);
  });

  it('written afresh have one line per event and are removed again', () => {
    expect(install()).toMatchObject({ before: undefined, changed: true });
    const text = readFileSync(path, 'utf8');
    expect(text.split('\n').filter((line) => line.includes('nd7-shim'))).toHaveLength(wanted.length);
    expect(() => JSON.parse(text) as unknown).not.toThrow();
    expect(findClaudeHooks(path).map(({ event }) => event)).toEqual(wanted.map(({ event }) => event));
    expect(install().changed).toBe(false);
    uninstall();
    expect(existsSync(path)).toBe(false);
    expect(attachedFiles(home)).toEqual([]);
  });

  it('keep the editor’s indentation and line ends', () => {
    writeFileSync(path, '{\r\n\t"model": "opus"\r\n}\r\n');
    install();
    const text = readFileSync(path, 'utf8');
    expect(text).toContain('\r\n\t"hooks": {\r\n\t\t"SessionStart": [');
    expect(text.replaceAll('\r\n', '')).not.toContain('\n');
  });

  it('get a changed command in place of the old one', () => {
    install();
    installClaudeCode({ settingsPath: path, hook: { ...hook, command: '/elsewhere/nd7-shim' }, home });
    expect(new Set(findClaudeHooks(path).map(({ command }) => command))).toEqual(new Set(['/elsewhere/nd7-shim']));
    expect(findClaudeHooks(path)).toHaveLength(wanted.length);
    uninstall();
    expect(existsSync(path)).toBe(false);
  });

  it('are never registered for events that would change the client', () => {
    expect(wanted.map(({ event }) => event)).not.toEqual(expect.arrayContaining(['WorktreeCreate']));
    for (const event of ['WorktreeCreate', 'MessageDisplay', 'FileChanged'])
      expect(wanted.some((one) => one.event === event)).toBe(false);
    expect(wanted.find(({ event }) => event === 'SessionEnd')?.group.hooks[0]?.timeout).toBe(5);
    expect(wanted.some(({ event }) => event === 'PostToolBatch')).toBe(true);
  });

  it.each([
    ['{"a": }', 'settings-broken', /line 1, column 7/],
    ['{\n "a": 1,\n "b"\n}', 'settings-broken', /line 4, column 1/],
    ['[]', 'settings-shape', /no JSON object/],
    ['{"hooks": []}', 'settings-shape', /"hooks" is not an object/],
    ['{"hooks": {"Stop": {}}}', 'settings-shape', /"Stop" is not a list/],
  ])('that are broken are refused with the place and left alone: %j', (text, code, message) => {
    writeFileSync(path, text);
    let error: HooksError | undefined;
    try {
      install();
    } catch (caught) {
      error = caught as HooksError;
    }
    expect(error).toBeInstanceOf(HooksError);
    expect(error?.code).toBe(code);
    expect(error?.message).toMatch(message);
    expect(error?.message).toContain(path);
    expect(readFileSync(path, 'utf8')).toBe(text);
    expect(readdirSync(join(folder, '.claude'))).toEqual(['settings.json']);
  });

  it('in another encoding are refused', () => {
    writeFileSync(path, Buffer.from([0x7b, 0xff, 0x7d]));
    expect(() => install()).toThrow(/not UTF-8/);
  });

  it('that are links stay links, and modes stay', () => {
    const real = join(folder, 'dotfiles.json');
    writeFileSync(real, '{}');
    chmodSync(real, 0o600);
    symlinkSync(real, path);
    install();
    expect(lstatSync(path).isSymbolicLink()).toBe(true);
    expect(statSync(real).mode & 0o777).toBe(0o600);
    expect(attachedFiles(home)).toEqual([real]);
    uninstall();
    expect(readFileSync(real, 'utf8')).toBe('{}');
    expect(lstatSync(path).isSymbolicLink()).toBe(true);
  });

  it('that are links to nothing yet make the file where the link leads', () => {
    symlinkSync('../dotfiles.json', path);
    install();
    expect(lstatSync(path).isSymbolicLink()).toBe(true);
    expect(readFileSync(join(folder, 'dotfiles.json'), 'utf8')).toContain('--agent');
    uninstall();
    expect(existsSync(join(folder, 'dotfiles.json'))).toBe(false);
    expect(lstatSync(path).isSymbolicLink()).toBe(true);
  });

  it('that cannot be written say so and nothing is half-written', () => {
    rmSync(join(folder, '.claude'), { recursive: true });
    writeFileSync(join(folder, '.claude'), 'a file in the way');
    expect(() => install()).toThrow(HooksError);
    expect(readFileSync(join(folder, '.claude'), 'utf8')).toBe('a file in the way');
  });

  it('planned are not written', () => {
    writeFileSync(path, '{}');
    expect(planClaudeCode(path, hook).changed).toBe(true);
    expect(readFileSync(path, 'utf8')).toBe('{}');
    expect(existsSync(home)).toBe(false);
  });

  it('with a key twice are edited where the client reads', () => {
    writeFileSync(path, '{"hooks": {"Stop": []}, "hooks": {"Stop": []}}');
    install();
    const read = parseJsonc(readFileSync(path, 'utf8')) as { hooks: { Stop: unknown[] } };
    expect(read.hooks.Stop).toHaveLength(1);
  });
});

describe('a shown change', () => {
  it('turns the old text into the new one', () => {
    fc.assert(
      fc.property(
        fc.array(fc.constantFrom('a', 'b', 'c'), { maxLength: 12 }),
        fc.array(fc.constantFrom('a', 'b', 'c'), { maxLength: 12 }),
        (a, b) => {
          fc.pre(a.join() !== b.join()); // no change shows no lines
          const lines = diffLines(a.join('\n'), b.join('\n'), 99);
          expect(
            lines
              .filter(({ mark }) => mark !== '+')
              .map(({ text }) => text)
              .join('\n'),
          ).toBe(a.join('\n'));
          expect(
            lines
              .filter(({ mark }) => mark !== '-')
              .map(({ text }) => text)
              .join('\n'),
          ).toBe(b.join('\n'));
        },
      ),
    );
  });
  it('leaves out what is far from it', () => {
    const lines = diffLines('1\n2\n3\n4\n5\n6\n7', '1\n2\n3\nx\n5\n6\n7', 1);
    expect(lines.map(({ mark, text }) => mark + text)).toEqual([' …', ' 3', '-4', '+x', ' 5', ' …']);
  });
});
