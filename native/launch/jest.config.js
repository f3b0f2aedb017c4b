import { base } from '../../jest.config.base.js';
export default { ...base, displayName: 'native-launch', roots: ['<rootDir>/test'], testTimeout: 120_000 };
