import fc from 'fast-check';
import { comparePaths, expandPath, isNormal, isWithin, prefixesOf } from './path.js';
import { foldName, nameMatches, parsePattern, prefixMatches } from './pattern.js';
import { PLACES } from './policies.fixture.js';

const patternMatches = (pattern: readonly string[], names: readonly string[]): boolean =>
  prefixMatches(pattern, names).at(-1) === true;

describe('a name and a component with *', () => {
  const name = fc.string({ unit: fc.constantFrom('a', 'b', '.', '*'), maxLength: 8 });

  it('match as the same regular expression does', () => {
    fc.assert(
      fc.property(name, name, (component, text) => {
        const pattern = component.replace(/[.]/g, '\\.').replace(/\*+/g, '[^]*');
        expect(nameMatches(component, text)).toBe(new RegExp(`^${pattern}$`).test(text));
      }),
      { numRuns: 2_000 },
    );
  });

  it('are compared in a time that no pattern makes long', () => {
    const start = process.cpuUsage();
    expect(nameMatches(`${'a*'.repeat(400)}b`, 'a'.repeat(4_000))).toBe(false);
    expect(patternMatches(Array<string>(15).fill('**').concat('x'), Array<string>(2_000).fill('a'))).toBe(false);
    // Backtracking would take longer than the universe has been there.
    expect(process.cpuUsage(start).user / 1e6).toBeLessThan(20);
  });
});

describe('a pattern with **', () => {
  it('matches any number of components, and each other one by itself', () => {
    const part = fc.constantFrom('a', 'b', '**', '*');
    fc.assert(
      fc.property(
        fc.array(part, { minLength: 1, maxLength: 5 }),
        fc.array(fc.constantFrom('a', 'b', 'ab'), { minLength: 1, maxLength: 5 }),
        (pattern, names) => {
          const regexp = pattern
            .map((one) => (one === '**' ? '(?:[^/]+/)*' : `${one === '*' ? '[^/]+' : one}/`))
            .join('');
          expect(patternMatches(pattern, names)).toBe(
            new RegExp(`^${regexp}$`).test(names.map((one) => `${one}/`).join('')),
          );
        },
      ),
      { numRuns: 2_000 },
    );
  });

  it('is read as it is written', () => {
    expect(parsePattern('**/.env*', { deep: true })).toEqual(['**', '.env*']);
    for (const bad of [
      '',
      '/a',
      'a/',
      'a//b',
      './a',
      'a/../b',
      '**',
      'a/**',
      '**a',
      'a\0',
      'a\ud83d*',
      'a/'.repeat(20) + 'a',
      'a'.repeat(2_000),
    ])
      expect(() => parsePattern(bad, { deep: true })).toThrow();
  });
});

describe('foldName', () => {
  it.each([
    ['.GIT', '.git'],
    ['.g\u200cit', '.git'],
    ['.git.', '.git'],
    ['.git ', '.git'],
    ['.git::$INDEX_ALLOCATION', '.git'],
    ['.\uff47it', '.git'],
    ['.\u2139dea', '.idea'],
    ['.cl\u0041ude', '.claude'],
    ['\u017fettings.json', 'settings.json'],
    ['.\u212Airo', '.kiro'],
    ['\u1e9e', 'ss'],
    ['.cl\u00adaude', '.claude'],
    ['ΑΣ', 'ας'.normalize('NFKD').replace('ς', 'σ')],
    ['e\u0301\u0323', 'e\u0323\u0301'],
    ['\u1fb3\u0301', 'α\u0301ι'],
    ['. ', '. '],
    ['', ''],
  ])('takes %j for %j', (name, folded) => {
    expect(foldName(name)).toBe(folded);
  });

  it('is its own fold, for every character there is', () => {
    const odd: string[] = [];
    for (let code = 1; code <= 0x10ffff; code++) {
      const name = `a${String.fromCodePoint(code)}b`;
      if (foldName(foldName(name)) !== foldName(name)) odd.push(name);
    }
    expect(odd).toEqual([]);
  });

  it('is its own fold, and does not see case', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), (name) => {
        expect(foldName(foldName(name))).toBe(foldName(name));
      }),
    );
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme-ascii' }), (name) => {
        expect(foldName(name.toUpperCase())).toBe(foldName(name.toLowerCase()));
      }),
    );
  });
});

describe('paths', () => {
  const path = fc
    .array(fc.constantFrom('a', 'b', 'ab', 'a.b', '-'), { maxLength: 4 })
    .map((parts) => `/${parts.join('/')}`);

  it('have one order, in which a folder comes before what lies in it', () => {
    fc.assert(
      fc.property(path, path, path, (a, b, c) => {
        expect(Math.sign(comparePaths(a, b))).toBe(-Math.sign(comparePaths(b, a)) || 0);
        expect(comparePaths(a, b) === 0).toBe(a === b);
        if (comparePaths(a, b) <= 0 && comparePaths(b, c) <= 0) expect(comparePaths(a, c)).toBeLessThanOrEqual(0);
        if (isWithin(b, a)) expect(comparePaths(a, b)).toBeLessThanOrEqual(0);
        expect(isWithin(b, a)).toBe(prefixesOf(b).includes(a));
      }),
      { numRuns: 1_000 },
    );
  });

  it('of a policy become absolute and normal, or are refused', () => {
    const written = fc.string({
      unit: fc.constantFrom('/', '.', '~', '$', 'TMP', 'a', '*', '\0', ' ', 'é'),
      maxLength: 8,
    });
    fc.assert(
      fc.property(written, (text) => {
        let expanded: string;
        try {
          expanded = expandPath(text, PLACES);
        } catch (error) {
          expect(error).toHaveProperty('name', 'PolicyError');
          return;
        }
        expect(isNormal(expanded)).toBe(true);
        // Whatever is said, nothing climbs out of the place it begins in.
        const start = text.startsWith('~') ? '/h' : text.startsWith('.') ? '/h/p' : text.startsWith('$') ? '/t' : '/';
        expect(isWithin(expanded, start)).toBe(true);
      }),
      { numRuns: 2_000 },
    );
  });

  it('follow the variables that move caches', () => {
    const places = { ...PLACES, variables: { GOPATH: '/g/o:/other', CARGO_HOME: '/c//' } };
    expect(expandPath('$GOMODCACHE/x', places)).toBe('/g/o/pkg/mod/x');
    expect(expandPath('$GOMODCACHE/x', PLACES)).toBe('/h/go/pkg/mod/x');
    expect(expandPath('$CARGO_HOME', places)).toBe('/c');
  });
});
