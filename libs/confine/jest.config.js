import { base } from '../../jest.config.base.js';
export default { ...base, displayName: 'confine', testTimeout: 60_000 };
