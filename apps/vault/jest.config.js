import { base } from '../../jest.config.base.js';
// One PostgreSQL for all test files of the project; each file makes databases of its own on it.
export default {
  ...base,
  displayName: 'vault',
  testTimeout: 60_000,
  globalSetup: '<rootDir>/src/testing/cluster.setup.ts',
  globalTeardown: '<rootDir>/src/testing/cluster.teardown.ts',
};
