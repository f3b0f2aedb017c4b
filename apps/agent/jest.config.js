import { base } from '../../jest.config.base.js';
export default { ...base, displayName: 'agent', testTimeout: 60_000 };
