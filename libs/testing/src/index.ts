export { testPostgres, testDatabase, stopTestPostgres } from './postgres.js';
