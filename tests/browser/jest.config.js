import { base } from '../../jest.config.base.js';
export default { ...base, roots: ['<rootDir>'], displayName: 'browser', testTimeout: 120_000, maxWorkers: 2 };
