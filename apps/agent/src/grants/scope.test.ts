import fc from 'fast-check';
import { Deadline, parseScope, scopeText } from './scope.js';

describe('a scope', () => {
  it.each([
    ['call', 'call'],
    ['session', 'session'],
    ['90s', 90_000],
    ['10m', 600_000],
    ['2h', 7_200_000],
    ['30d', 30 * 86_400_000],
  ])('%s is read and written', (text, scope) => {
    expect([parseScope(text), scopeText(scope as number)]).toEqual([scope, text === '90s' ? '90s' : text]);
  });

  it.each(['', '0s', '10', 'm', '-1m', '1.5h', '31d', '99999999s', ' 1m', '1m ', 'SESSION', '10м'])(
    '%j is none',
    (text) => {
      expect(parseScope(text)).toBeUndefined();
    },
  );

  it('that is read is written so that it reads the same', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 2_000_000 }), fc.constantFrom('s', 'm', 'h', 'd'), (count, unit) => {
        const scope = parseScope(`${count}${unit}`);
        if (scope !== undefined) expect(parseScope(scopeText(scope))).toBe(scope);
      }),
    );
  });
});

describe('a deadline', () => {
  it('is over when either clock says so, and a clock that goes back makes it no later', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 1e9 }),
        fc.array(fc.tuple(fc.integer({ min: -1e9, max: 1e9 }), fc.nat(1e9))),
        (ms, steps) => {
          const now = { wall: 1e12, monotonic: 0 };
          const deadline = new Deadline({ wall: () => now.wall, monotonic: () => now.monotonic }, ms);
          for (const [wall, monotonic] of steps) {
            now.wall += wall;
            now.monotonic += monotonic;
            expect(deadline.isOver).toBe(now.monotonic >= ms || now.wall >= 1e12 + ms);
          }
        },
      ),
    );
  });
});
