import { PROPERTIES } from './ruleset.js';

describe('the properties', () => {
  it('have names that a manifest, a policy and an error can share, and each says what it promises', () => {
    for (const [name, promise] of Object.entries(PROPERTIES)) {
      expect(name).toMatch(/^[a-z]+(\.[a-z]+){1,2}$/);
      expect(promise.length).toBeGreaterThan(15);
    }
  });
});
