import fc from 'fast-check';
import { detachValues, SecretMemory, type DetachResult } from './index.js';
import { findSecrets } from './find.js';

const random = (n: number): Uint8Array => crypto.getRandomValues(new Uint8Array(n));
const detach = (payload: unknown, memory = new SecretMemory()): DetachResult =>
  detachValues(JSON.stringify(payload), { random, memory });
/** What a reader is shown of a string; undefined: nothing was found in it. */
const shown = (text: string): string | undefined => detach({ tool_input: { command: text } }).detached[0]?.shown;

// Put together here, so that no scanner of this repository takes them for real.
const long = 'aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5cD7eF9gH1';
const TOKENS: Record<string, string> = {
  aws: `AK${'IA'}IOSFODNN7EXAMPLQ`,
  github: `gh${'p_'}${long.slice(0, 36)}`,
  'github fine-grained': `github${'_pat_'}11ABCDEFG0${long}_${long}`.slice(0, 93),
  gitlab: `gl${'pat-'}${long.slice(0, 20)}`,
  slack: `xo${'xb-'}123456789012-1234567890123-${long.slice(0, 24)}`,
  'slack webhook': `hooks.slack.com/ser${'vices'}/T00000000/B00000000/${long.slice(0, 24)}`,
  npm: `np${'m_'}${long.slice(0, 36)}`,
  pypi: `py${'pi-'}AgEIcHlwaS5vcmcCJ${long}`,
  anthropic: `sk-${'ant-'}api03-${long}-AA`,
  openai: `sk-${'proj-'}${long}`,
  'openai, old': `s${'k-'}${long}`,
  google: `AI${'za'}Sy${long.slice(0, 33)}`,
  stripe: `sk_${'live_'}${long.slice(0, 24)}`,
  jwt: `ey${'J'}hbGciOiJIUzI1NiJ9.ey${'J'}zdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U`,
  huggingface: `h${'f_'}${long.slice(0, 34)}`,
  'nd7 machine': `nd7${'m1_'}${long.slice(0, 43)}`,
};

describe('tokens of a known shape', () => {
  it.each(Object.entries(TOKENS))('%s is found in a command, and the command stays readable', (_name, token) => {
    expect(shown(`deploy --with '${token}' && echo done`)).toBe(`deploy --with '[secret]' && echo done`);
    expect(shown(token)).toBe('[secret]');
    expect(shown(`x${token}`)).not.toBe(`[secret]`); // in the middle of a word it is another word
  });

  it('are found behind JSON escapes, in keys, in numbers of places, and in what is detached for another reason', () => {
    const token = TOKENS['github'] as string;
    const escaped = `{"a":"\\u0067${token.slice(1)}"}`;
    expect(detachValues(escaped, { random, memory: new SecretMemory() }).detached).toMatchObject([
      { at: '/a', why: 'secret', shown: '[secret]' },
    ]);
    expect(detach({ a: { [token]: 1 }, b: 2 })).toMatchObject({
      data: '{"a":null,"b":2}',
      detached: [{ at: '/a', why: 'secret' }],
    });
    expect(detach({ [token]: 1 })).toMatchObject({
      data: '{"payload":null}',
      detached: [{ at: '/payload', why: 'secret' }],
    });
    expect(detach({ a: [token, 'x', [token]] }).detached.map((d) => d.at)).toEqual(['/a/0', '/a/2/0']);
    expect(detach({ big: `${'x '.repeat(40_000)}${token}` }).detached).toMatchObject([{ at: '/big', why: 'secret' }]);
    const deep = detachValues(`{"a":${'['.repeat(400)}"${token}"${']'.repeat(400)}}`, {
      random,
      memory: new SecretMemory(),
    });
    expect(deep.detached).toMatchObject([{ why: 'secret' }]);
  });

  it('private keys go whole, cut off or not', () => {
    const begin = `-----BEGIN OPENSSH ${'PRIVATE'} KEY-----`;
    const end = begin.replace('BEGIN', 'END');
    expect(shown(`a\n${begin}\nb3Blbn\nAAAA\n${end}\nz`)).toBe('a\n[secret]\nz');
    expect(shown(`a\n${begin}\nb3Blbn`)).toBe('a\n[secret]');
    expect(shown('-----BEGIN PUBLIC KEY-----\nMCowBQ\n-----END PUBLIC KEY-----')).toBeUndefined();
  });

  it('passwords in URLs and headers', () => {
    expect(shown('psql postgres://app:hunter2pass@db.example/x')).toBe('psql postgres://app:[secret]@db.example/x');
    expect(shown(`curl -H "Authorization: Bearer ${'abcdef'}0123456789" https://x.example`)).toBe(
      'curl -H "Authorization: Bearer [secret]" https://x.example',
    );
    expect(shown('curl -H "Authorization: Basic dXNlcjpwYXNzd29yZA==" x')).toBe(
      'curl -H "Authorization: Basic [secret]" x',
    );
    expect(shown('curl -u admin:s3cr3tpass https://x.example')).toBe('curl -u admin:[secret] https://x.example');
  });
});

describe("values beside a secret's name", () => {
  it.each([
    ['DB_PASSWORD=hunter two', 'DB_PASSWORD=[secret] two'],
    ["export API_KEY='k9f3-77ab-x2c1'", "export API_KEY='[secret]'"],
    ['password: "correct horse 1"', 'password: "[secret]"'],
    ['{"client_secret": "9f8e7d6c5b4a"}', '{"client_secret": "[secret]"}'],
    ['{\\"accessToken\\":\\"a1b2c3d4e5f6g7h8\\"}', '{\\"accessToken\\":\\"[secret]\\"}'],
    ['login --password hunter2!x --name a', 'login --password [secret] --name a'],
    ['login --token=a1b2c3d4e5f6g7', 'login --token=[secret]'],
    ['aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYzzzzzzzzKEY', 'aws_secret_access_key = [secret]'],
  ])('%s', (said, expected) => expect(shown(said)).toBe(expected));

  it('as a member of the payload', () => {
    expect(detach({ tool_input: { api_key: 'a1b2c3d4e5f6g7h8', user: 'anna' } }).detached).toMatchObject([
      { at: '/tool_input/api_key', why: 'secret', shown: '[secret]' },
    ]);
  });
});

describe('innocent text', () => {
  it.each([
    ['a git hash', 'git show 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b'],
    ['a uuid', 'session 0b5e7c1e-0c1e-4f7e-9d3b-5f1d9a1c2b3d'],
    ['a tool call id', 'toolu_01A09q90qw90lq917835lq9'],
    ['a digest', 'sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855'],
    ['an integrity line', 'integrity sha512-abc123DEF456ghi789JKL012mno345PQR678stu901VWX234yz=='],
    ['usage counts', 'max_tokens: 123456789012, input_tokens=99999999999999'],
    ['a type', 'interface Login { password: string; token?: string }'],
    [
      'code',
      'const token = await getToken(req); const password = request.form["password"]; secret = process.env.SECRET',
    ],
    ['a variable', 'PASSWORD=$DB_PASSWORD TOKEN=${GH_TOKEN} API_KEY=<your-key>'],
    ['prose', 'The token: it is the next word. Password policy: none.'],
    ['a dashed name', 'pip install sk-learn-some-very-long-dashed-name task-sk-aaaaaaaaaaaaaaaaaaaaaaaa'],
    ['an address', 'http://localhost:3000/@scope/pkg and git@github.com:a/b.git and mailto:a@b.c'],
    ['a path', '/home/u/.config/tokens.json'],
    ['a JWT-like word', 'eyJust.eyJust.words'],
  ])('%s is left alone', (_what, said) => expect(shown(said)).toBeUndefined());

  it('an image is large, not secret', () => {
    const image = Array.from(
      { length: 90_000 },
      (_, i) => 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/'[(i * 7919 + ((i * i) % 61)) % 64],
    ).join('');
    expect(detach({ source: { data: image } }).detached).toMatchObject([{ at: '/source/data', why: 'size' }]);
    expect(detach({ source: { data: image.slice(0, 50_000) } }).detached).toEqual([]);
  });
});

describe('env files', () => {
  const file = 'PORT=3000\n# comment\nexport DB_URL="a\nb" \n\nKEY=\n';
  it('written: every value, its names stay', () => {
    const { data, detached } = detach({
      tool_name: 'Write',
      tool_input: { file_path: '/p/.env.local', content: file },
    });
    expect(JSON.parse(data)).toEqual({ tool_name: 'Write', tool_input: { file_path: '/p/.env.local', content: null } });
    expect(detached).toMatchObject([
      {
        at: '/tool_input/content',
        why: 'secret',
        shown: 'PORT=[secret]\n# comment\nexport DB_URL="[secret]" \n\nKEY=\n',
      },
    ]);
  });

  it('edited: a piece without a name is a piece of a value', () => {
    const { detached } = detach({
      tool_input: { file_path: '.env', old_string: 'hunter2', new_string: 'A=b' },
      tool_response: { filePath: '.env', structuredPatch: [{ lines: ['-A=x', '+A=b'] }] },
    });
    expect(detached.map((d) => [d.at, d.shown])).toEqual([
      ['/tool_input/old_string', '[secret]'],
      ['/tool_input/new_string', 'A=[secret]'],
      ['/tool_response/structuredPatch/0/lines/0', '-A=[secret]'],
      ['/tool_response/structuredPatch/0/lines/1', '+A=[secret]'],
    ]);
  });

  it('read, wherever the path stands: before, after, in the answer, in a batch', () => {
    const read = {
      tool_response: { type: 'text', file: { content: 'A=1b2c', filePath: '/x/.env', numLines: 1 } },
      tool_name: 'Read',
      tool_input: { file_path: '/x/.env' },
    };
    expect(detach(read).detached.map((d) => d.at)).toEqual(['/tool_response/file/content']);
    const batch = {
      tool_calls: [
        { tool_input: { file_path: '/x/a.ts' }, tool_response: 'A=1b2c' },
        { tool_input: { file_path: '/x/.env' }, tool_response: '     1→A=1b2c' },
      ],
    };
    expect(detach(batch).detached.map((d) => [d.at, d.shown])).toEqual([
      ['/tool_calls/1/tool_response', '     1→A=[secret]'],
    ]);
  });

  it('printed by a command: assignments in its output', () => {
    const { detached } = detach({
      tool_input: { command: 'cat .env && ls' },
      tool_response: { stdout: 'MODE=abcd1234\nREADME.md\n' },
    });
    expect(detached.map((d) => [d.at, d.shown])).toEqual([['/tool_response/stdout', 'MODE=[secret]\nREADME.md\n']]);
  });

  it('other files with the same text are left alone', () => {
    expect(detach({ tool_input: { file_path: '/p/environment.md', content: file } }).detached).toEqual([]);
  });
});

describe('a secret that was seen', () => {
  it('is found again without its name, with another salt, further up in the same payload too', () => {
    const memory = new SecretMemory();
    const first = detach({ echo: 'it says zx81-qwerty-42', input: 'DB_PASSWORD=zx81-qwerty-42' }, memory);
    expect(first.detached.map((d) => d.shown)).toEqual(['it says [secret]', 'DB_PASSWORD=[secret]']);
    const later = detach({ out: 'x zx81-qwerty-42 y zx81-qwerty-42' }, memory);
    expect(later.detached).toMatchObject([{ at: '/out', why: 'secret', shown: 'x [secret] y [secret]' }]);
    expect(detach({ out: 'zx81-qwerty-42' }).detached).toEqual([]); // another session's
    const again = detach({ out: 'x zx81-qwerty-42 y zx81-qwerty-42' }, memory);
    expect(again.detached[0]?.blake3).not.toBe(later.detached[0]?.blake3);
  });

  it('is known again after a restart, from what was shown of it', () => {
    const token = TOKENS['github'] as string;
    const { detached, blobs } = detach({ c: `a DB_PASSWORD=qwertz-88-asdf b ${token}` });
    const memory = new SecretMemory();
    const value = new TextDecoder().decode(blobs[0]?.bytes.subarray(32));
    expect(memory.recall(value, detached[0]?.shown ?? '')).toBe(2);
    expect(detach({ x: 'qwertz-88-asdf' }, memory).detached).toHaveLength(1);
    for (const [bad, said] of [
      ['1', 'x'],
      ['"abc', 'x'],
      ['"abc"', 'abd[secret]'],
      ['"abc"', 'abc'],
      ['"a"', 'b[secret]c'],
    ] as const)
      expect(memory.recall(bad, said)).toBe(0);
  });

  it('every occurrence is found, whatever is remembered besides (property, against indexOf)', () => {
    const word = fc.string({ minLength: 8, maxLength: 12, unit: fc.constantFrom('a', 'b') });
    fc.assert(
      fc.property(
        fc.array(word, { minLength: 1, maxLength: 6 }),
        fc.string({ maxLength: 80, unit: fc.constantFrom('a', 'b', 'c') }),
        (words, text) => {
          const memory = new SecretMemory();
          for (const w of words) {
            memory.add(w);
            memory.find(text); // links in between must not matter
          }
          const covered = new Set<number>();
          for (const { start, end } of memory.find(text)) for (let i = start; i < end; i++) covered.add(i);
          const expected = new Set<number>();
          for (const w of words)
            for (let at = text.indexOf(w); at >= 0; at = text.indexOf(w, at + 1))
              for (let i = at; i < at + w.length; i++) expected.add(i);
          expect([...covered].sort((a, b) => a - b)).toEqual([...expected].sort((a, b) => a - b));
        },
      ),
      { numRuns: 500 },
    );
  });

  it('memory has a bound', () => {
    const memory = new SecretMemory();
    for (let i = 0; i < 10_000; i++) memory.add(`secret-number-${i}`);
    expect(memory.size).toBeLessThanOrEqual(65_536);
    memory.add('x'.repeat(5_000));
    memory.add('short');
    expect(memory.find('short')).toEqual([]);
  });
});

describe('cost', () => {
  // Steps are characters looked at; none of these may cost more than a few times the text, however it is made.
  it.each([
    'token=',
    'token="',
    "password='",
    'eyJ',
    'eyJ.eyJ.',
    'sk-',
    'ghp_',
    'AKIA',
    '-u x ',
    '--token ',
    '://a:',
    '://',
    '-----BEGIN ',
    '-----BEGIN PRIVATE KEY-----',
    'authorization: bearer ',
    'A="',
    'password:\\"',
    ' ',
    'a',
    '=',
    ':',
    '"',
    '\n',
    'xoxb-1-',
    '.env ',
  ])('of %j repeated is linear', (piece) => {
    const steps = (size: number): number =>
      findSecrets(piece.repeat(Math.ceil(size / piece.length)), {
        memory: new SecretMemory(),
        env: 'file',
        key: 'password',
        patterns: ['to*', 'ab'],
      }).steps;
    const [small, large] = [steps(20_000), steps(200_000)];
    expect(large / 200_000).toBeLessThan(120);
    expect(large / small).toBeLessThan(13);
  });
});
