import { base } from '../../jest.config.base.js';
export default { ...base, roots: ['<rootDir>'], displayName: 'workspace', testTimeout: 120_000 };
