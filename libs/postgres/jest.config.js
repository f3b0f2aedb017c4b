import { base } from '../../jest.config.base.js';
export default { ...base, displayName: 'postgres', testTimeout: 120_000 };
