// Why says what the rules say, for any policies.
import fc from 'fast-check';
import { compile } from './compile.js';
import { accessAt, decideHost } from './decide.js';
import { RIGHTS } from './files.js';
import { leafAt } from './names.js';
import type { CompileInput } from './parts.js';
import { askedHosts, askedPorts, someInput, somePath } from './policies.fixture.js';
import { builtinPolicy } from './read.js';
import type { Ruleset } from './ruleset.js';
import { why } from './why.js';

const rulesetOf = (input: CompileInput): Ruleset => compile(input).ruleset;

describe('why', () => {
  it('agrees with the rules about every path, and names a rule that the policies have', () => {
    fc.assert(
      fc.property(someInput, fc.array(somePath, { minLength: 5, maxLength: 20 }), (input, paths) => {
        const ruleset = rulesetOf(input);
        for (const path of paths)
          for (const about of RIGHTS) {
            const answer = why(ruleset, { about, path });
            const leaf = about === 'write' ? leafAt(ruleset.leaves, path) : undefined;
            const may = accessAt(ruleset, path)[about];
            expect([path, about, answer.outcome !== 'denied']).toEqual([
              path,
              about,
              may && leaf?.treatment !== 'refuse',
            ]);
            expect(answer.source).not.toBeNull();
            for (const way of answer.instead) {
              if (way.kind === 'use' && way.what.startsWith('/') && about !== 'read')
                expect(accessAt(ruleset, way.what)[about === 'exec' ? 'exec' : 'write'] || answer.by === 'mask').toBe(
                  true,
                );
            }
          }
      }),
      { numRuns: 60 },
    );
  });

  it('agrees with the rules about every host', () => {
    fc.assert(
      fc.property(someInput, (input) => {
        const ruleset = rulesetOf(input);
        for (const host of askedHosts)
          for (const port of askedPorts) {
            const authority = `${host.host.includes(':') ? `[${host.host}]` : host.host}:${port}`;
            const answer = why(ruleset, { about: 'host', authority });
            expect([authority, answer.outcome]).toEqual([
              authority,
              decideHost(ruleset.network, host, port).allow ? 'allowed' : 'denied',
            ]);
          }
      }),
      { numRuns: 40 },
    );
  });

  it('names the smallest grant that would do, and with it the thing is allowed', () => {
    fc.assert(
      fc.property(someInput, somePath, fc.constantFrom('read' as const, 'write' as const), (input, path, about) => {
        const answer = why(rulesetOf(input), { about, path });
        const grant = answer.instead.find((way) => way.kind === 'grant')?.grant;
        if (grant === undefined || (grant.right !== 'read' && grant.right !== 'write')) return;
        const document = { nd7: 1 as const, files: { [grant.right]: { allow: [grant.what] } } };
        const widened = rulesetOf({ ...input, grants: [...input.grants, builtinPolicy('grant', document)] });
        const after = why(widened, { about, path });
        // What the team, a mask of the team or nd7 itself holds stays held; that is said instead of a grant wherever it is the reason.
        if (after.outcome === 'denied') expect(['team', 'fixed', 'grant']).toContain(after.source?.layer);
      }),
      { numRuns: 60 },
    );
  });
});
