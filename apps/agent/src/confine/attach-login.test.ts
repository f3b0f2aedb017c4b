import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Ruleset } from '@nd7/policy';
import { removeThrowAways, throwAway } from '../testing/recorder.fixture.js';
import { unapprovedKey } from './attach-login.js';
import { rulesetFor } from './ruleset.js';

let home: string;
let ruleset: Ruleset;
const KEY = 'sk-test-0123456789-0123456789';
beforeEach(() => {
  home = throwAway();
  mkdirSync(join(home, 'project'));
  mkdirSync(join(home, '.claude'));
  const environment = { ANTHROPIC_API_KEY: KEY };
  const places = { home, project: join(home, 'project'), nd7Home: join(home, '.nd7') };
  ({ ruleset } = rulesetFor({ profile: null, agent: 'claude-code', environment, ...places }));
});
afterEach(removeThrowAways);

const asked = (own: string[] = [], environment: NodeJS.ProcessEnv = { ANTHROPIC_API_KEY: KEY }) =>
  unapprovedKey(ruleset, environment, own);
const approve = (file: string, key: string) =>
  writeFileSync(
    join(home, file),
    JSON.stringify({ customApiKeyResponses: { approved: [key.slice(-20)], rejected: [] } }),
  );

it('says before a first start at a terminal that an answer about the key would be held back', () => {
  expect(asked()).toContain(`CLAUDE_CONFIG_DIR=${join(home, '.claude')}`);
  expect([asked(['-p', 'x']), asked([], {}), asked([], { ANTHROPIC_API_KEY: '' })]).toEqual([
    undefined,
    undefined,
    undefined,
  ]);
});

it('says nothing where it is approved: in the state inside, or in that which is copied there', () => {
  approve('.claude.json', KEY);
  expect(asked()).toBeUndefined();
  // From then on the state inside is what counts.
  approve('.claude/.claude.json', 'another-key-0123456789-0123456789-x');
  expect(asked()).toBeDefined();
  approve('.claude/.claude.json', KEY);
  expect(asked()).toBeUndefined();
  writeFileSync(join(home, '.claude/.claude.json'), '{ no state');
  expect(asked()).toBeDefined();
});
