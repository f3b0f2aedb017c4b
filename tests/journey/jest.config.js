import { base } from '../../jest.config.base.js';
export default { ...base, roots: ['<rootDir>'], displayName: 'journey', testTimeout: 240_000 };
