export { testPostgres, testDatabase, stopTestPostgres } from './postgres.js';
export { VaultDouble, type VaultFaults } from './vault-double.js';
export { SessionDouble } from './session-double.js';
export { python, REFERENCE, referenceVerdict } from './reference.js';
