import fc from 'fast-check';
import { connectOptions } from './connect.js';

describe('connectOptions', () => {
  it.each([
    ['postgres://postgres@%2Ftmp%2Fx:5432/db', { host: '/tmp/x', port: 5432, username: 'postgres', database: 'db' }],
    [
      'postgresql://u:p%40ss@db.example:6000/n?sslmode=require',
      { host: 'db.example', port: 6000, username: 'u', password: 'p@ss', database: 'n', ssl: 'require' },
    ],
    [
      'postgres:///db?host=/run/postgresql&user=me',
      { host: '/run/postgresql', port: 5432, username: 'me', database: 'db' },
    ],
    ['postgres://h', { host: 'h', port: 5432, username: 'postgres', database: 'postgres' }],
  ])('reads %s as libpq does', (url, expected) => {
    expect(connectOptions(url)).toEqual(expected);
  });

  it.each(['', 'mysql://h/d', 'localhost', 'postgres://a b@:x/y:z:5'])(
    'refuses %j without repeating a password',
    (url) => {
      expect(() => connectOptions(url)).toThrow(TypeError);
    },
  );

  it('reads back every user, password, host and database', () => {
    const word = fc.string({ minLength: 1, maxLength: 20 });
    fc.assert(
      fc.property(word, word, word, fc.integer({ min: 1, max: 65535 }), (username, password, database, port) => {
        const url = `postgres://${encodeURIComponent(username)}:${encodeURIComponent(password)}@h:${port}/${encodeURIComponent(database)}`;
        expect(connectOptions(url)).toEqual({ host: 'h', port, username, password, database });
      }),
    );
  });
});
