import nx from '@nx/eslint-plugin';
import tseslint from 'typescript-eslint';

// Core libs run unchanged in Node and in the browser: nothing of either platform may slip in.
const coreLibs = ['entry', 'blake3', 'tlog', 'chain', 'segment', 'receipt', 'verify', 'vault-api', 'detach', 'policy'];

export default tseslint.config(
  {
    ignores: [
      '**/dist',
      '**/node_modules',
      '.nx',
      'coverage',
      'tests/vectors',
      'tests/fake-api',
      'tests/escape',
      'tests/captures',
      'tests/hostile',
      '**/test-results.json',
      '**/*.generated.ts',
      'libs/blake3/kernel',
    ],
  },
  ...tseslint.configs.strict,
  {
    rules: {
      '@typescript-eslint/no-extraneous-class': ['error', { allowWithDecorator: true }],
      'max-lines': ['error', 500],
      'no-restricted-syntax': [
        'error',
        {
          selector: "CallExpression[callee.object.name='sql'][callee.property.name='unsafe']",
          message: 'sql.unsafe takes text: only the migration runner may use it (eslint.config.js names it)',
        },
      ],
    },
  },
  {
    files: ['**/*.ts', '**/*.tsx'],
    plugins: { '@nx': nx },
    rules: {
      '@nx/enforce-module-boundaries': [
        'error',
        {
          enforceBuildableLibDependency: true,
          allow: [],
          depConstraints: [
            {
              sourceTag: 'layer:core',
              onlyDependOnLibsWithTags: ['layer:core'],
              allowedExternalImports: ['@noble/*', 'zod', 'jsonc-parser', 'fast-check'],
            },
            {
              sourceTag: 'layer:edge',
              onlyDependOnLibsWithTags: ['layer:core', 'layer:edge'],
              bannedExternalImports: ['@nestjs/*', 'react'],
            },
            { sourceTag: 'layer:app', onlyDependOnLibsWithTags: ['layer:core', 'layer:edge'] },
            { sourceTag: 'layer:web', onlyDependOnLibsWithTags: ['layer:core'] },
            { sourceTag: 'layer:test', onlyDependOnLibsWithTags: ['layer:core', 'layer:edge'] },
            { sourceTag: 'plane:record', onlyDependOnLibsWithTags: ['plane:record', 'plane:any'] },
            { sourceTag: 'plane:vault', onlyDependOnLibsWithTags: ['plane:vault', 'plane:any'] },
            { sourceTag: 'plane:confine', onlyDependOnLibsWithTags: ['plane:confine', 'plane:any'] },
            // The program on the developer's machine is where recording and confining meet.
            {
              sourceTag: 'plane:agent',
              onlyDependOnLibsWithTags: ['plane:record', 'plane:confine', 'plane:any'],
            },
            { sourceTag: 'plane:any', onlyDependOnLibsWithTags: ['plane:any'] },
          ],
        },
      ],
    },
  },
  {
    files: coreLibs.map((lib) => `libs/${lib}/src/**/*.ts`),
    ignores: ['**/*.test.ts', '**/*.fixture.ts'],
    rules: {
      'no-restricted-imports': [
        'error',
        {
          patterns: [
            {
              group: ['node:*', 'fs', 'path', 'crypto', 'os'],
              message: 'core libs run in the browser: no Node built-ins',
            },
            {
              group: ['@noble/ed25519'],
              importNames: ['verify', 'verifyAsync'],
              message: 'noble verifies by ZIP 215: use verifySignatures of @nd7/tlog',
            },
          ],
        },
      ],
      'no-restricted-globals': [
        'error',
        { name: 'Buffer', message: 'core libs run in the browser: use Uint8Array' },
        { name: 'process', message: 'core libs run in the browser' },
      ],
      'no-restricted-properties': [
        'error',
        { object: 'Date', property: 'now', message: 'time is a parameter: take a Clock' },
      ],
      // platform.d.ts of libs/entry declares the few names that Node and browsers share; there is no module to import them from.
      '@typescript-eslint/triple-slash-reference': ['error', { path: 'always' }],
    },
  },
  {
    files: ['**/*.test.ts', '**/*.fixture.ts', 'libs/testing/**/*.ts', 'tests/**/*.ts'],
    rules: { '@nx/enforce-module-boundaries': 'off', '@typescript-eslint/no-non-null-assertion': 'off' },
  },
);
