import { base } from '../../jest.config.base.js';
export default { ...base, roots: ['<rootDir>'], displayName: 'boundary', testTimeout: 240_000 };
