import { describe, expect, it } from '@jest/globals';
import * as bodies from './bodies.js';
import {
  openApi,
  parseEnrolmentToken,
  pathOf,
  problemDocument,
  ProblemDocument,
  PROBLEMS,
  ROUTES,
  type Route,
} from './index.js';

describe('the table of routes', () => {
  it.each(Object.entries<Route>(ROUTES))(
    '%s names problems that exist, once each, and a limit where it takes a body',
    (_name, route) => {
      expect(new Set(route.problems).size).toBe(route.problems.length);
      for (const code of route.problems) expect(PROBLEMS).toHaveProperty([code]);
      expect(route.limit !== undefined).toBe(route.body !== undefined);
      expect(Object.keys(route.answers).length).toBeGreaterThan(0);
    },
  );

  it('names every problem somewhere, but the failure that any route may answer', () => {
    const named = new Set(Object.values<Route>(ROUTES).flatMap((route) => route.problems));
    expect(Object.keys(PROBLEMS).filter((code) => !named.has(code as 'internal'))).toEqual(['internal']);
  });

  it('has each method and path once', () => {
    const all = Object.values<Route>(ROUTES).map((route) => `${route.method} ${route.path}`);
    expect(new Set(all).size).toBe(all.length);
  });

  it('fills paths in, percent-encoded, and refuses to guess', () => {
    expect(pathOf('segment', { session: 'a/b', from: 0 })).toBe('/v1/sessions/a%2Fb/segments/0');
    expect(pathOf('tile', { team: 'acme', path: '0/x001/067' })).toBe('/t/acme/tile/0/x001/067');
    expect(() => pathOf('segment', { session: 'a' })).toThrow('from');
  });
});

describe('problems', () => {
  it.each(Object.keys(PROBLEMS) as (keyof typeof PROBLEMS)[])('%s makes a document of its form', (code) => {
    const document = problemDocument(code, 'detail', { next: 3 });
    expect(ProblemDocument.parse(document)).toEqual(document);
    expect(document.status).toBeGreaterThanOrEqual(400);
  });
});

describe('bodies', () => {
  it('an enrolment token is three parts; anything else is none', () => {
    const token = `nd7e1_${'a-_Z'.repeat(10)}xyz_${'0f'.repeat(32)}`;
    expect(parseEnrolmentToken(` ${token}\n`)).toEqual({
      secret: `${'a-_Z'.repeat(10)}xyz`,
      vkeyHash: '0f'.repeat(32),
    });
    for (const bad of ['', 'nd7e1_', token.slice(1), token.toUpperCase(), `${token}0`, token.replace('nd7e1', 'nd7e2')])
      expect(parseEnrolmentToken(bad)).toBeUndefined();
  });

  it.each([
    [
      'reason of the vault',
      bodies.CloseRequest,
      { entries: 1, head: '0'.repeat(64), reason: 'forked', signature: `${'A'.repeat(86)}==` },
    ],
    [
      'upper-case hex',
      bodies.OpenRequest,
      { entries: 1, head: 'A'.repeat(64), key: '0'.repeat(64), signature: `${'A'.repeat(86)}==` },
    ],
    [
      'a count that is none',
      bodies.OpenRequest,
      { entries: 1.5, head: '0'.repeat(64), key: '0'.repeat(64), signature: `${'A'.repeat(86)}==` },
    ],
    [
      'a count beyond exact numbers',
      bodies.OpenRequest,
      { entries: 2 ** 53, head: '0'.repeat(64), key: '0'.repeat(64), signature: `${'A'.repeat(86)}==` },
    ],
    [
      'a session id that leads elsewhere',
      bodies.HeartbeatRequest,
      { time: 't', sessions: [{ session: '../a', entries: 0, head: '0'.repeat(64) }] },
    ],
    [
      'a heartbeat that names a session twice',
      bodies.HeartbeatRequest,
      { time: 't', sessions: [0, 1].map((entries) => ({ session: 'a', entries, head: '0'.repeat(64) })) },
    ],
    ['a heartbeat promised for never', bodies.HeartbeatRequest, { time: 't', sessions: [], interval: 0 }],
    ['an absence of no known kind', bodies.HeartbeatRequest, { time: 't', sessions: [], away: { reason: 'lunch' } }],
    [
      'a name of spaces',
      bodies.EnrolRequest,
      {
        secret: 'a'.repeat(43),
        machine: '0'.repeat(64),
        name: '   ',
        name_hash: '0'.repeat(64),
        signature: `${'A'.repeat(86)}==`,
      },
    ],
  ])('%s is refused', (_what, schema, value) => {
    expect(schema.safeParse(value).success).toBe(false);
  });
});

describe('the OpenAPI document', () => {
  it('has every route, its parameters and its refusals, and can be sent', () => {
    const document = JSON.parse(JSON.stringify(openApi({ version: '1.2.3', url: 'https://vault.example' }))) as {
      paths: Record<
        string,
        Record<
          string,
          { parameters: { name: string; in: string }[]; responses: Record<string, { description: string }> }
        >
      >;
    };
    expect(Object.values(document.paths).flatMap((path) => Object.keys(path)).length).toBe(Object.keys(ROUTES).length);
    const segment = document.paths['/v1/sessions/{session}/segments/{from}']?.['put'];
    expect(segment?.parameters.map((one) => one.name)).toEqual(
      expect.arrayContaining([
        'session',
        'from',
        'nd7-claim',
        'nd7-signature',
        'nd7-time',
        'nd7-nonce',
        'nd7-request-signature',
      ]),
    );
    expect(segment?.responses['409']?.description).toContain('`fork`');
    expect(JSON.stringify(document)).not.toContain('$schema');
  });
});
