import { join } from 'node:path';
import { capturedSession } from './captures.js';

const root = join(import.meta.dirname, '..', '..', '..');

describe('a captured session', () => {
  it('is what the client wrote, in order, under an id of its own', () => {
    const { session, payloads } = capturedSession(root, 'basic');
    const read = payloads.map((payload) => JSON.parse(payload) as { session_id: string; hook_event_name: string });
    expect(new Set(read.map(({ session_id }) => session_id))).toEqual(new Set([session]));
    expect(read.at(0)?.hook_event_name).toBe('SessionStart');
    expect(read.at(-1)?.hook_event_name).toBe('SessionEnd');
    expect(capturedSession(root, 'basic').session).not.toBe(session);
  });

  it('of a scenario that was not captured is said to be missing', () => {
    expect(() => capturedSession(root, 'no-such-thing')).toThrow(/no capture called no-such-thing/);
  });
});
