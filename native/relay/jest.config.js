import { base } from '../../jest.config.base.js';
export default { ...base, displayName: 'native-relay', roots: ['<rootDir>/test'], testTimeout: 120_000 };
