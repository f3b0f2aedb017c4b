import { base } from '../../jest.config.base.js';
export default { ...base, roots: ['<rootDir>'], displayName: 'toolchains', testTimeout: 240_000 };
