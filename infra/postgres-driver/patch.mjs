// Mends two faults of the `postgres` driver 3.4.9 in node_modules; npm runs it after every install (root package.json, "postinstall").
//
// 1. A write that was put off to the next turn finds the socket gone and throws where nobody can catch it: a database restart, a failover or
//    an administrator's pg_terminate_backend ends the whole process, and where it is survived the connection's slot never sends again.
//    Reported upstream as porsager/postgres issues 1066, 1154, 1208 (fixes proposed there: 1168, 1209). Now the query is rejected with
//    CONNECTION_CLOSED, as it is for every other broken connection, and what was not sent is forgotten with the socket.
// 2. The query that reads array types on a new connection has no handler: cut at that moment, it is an unhandled rejection.
//
// The text must be exactly the one known here: after an upgrade of the driver this stops with a message, and somebody looks whether it is
// still needed. Done twice it changes nothing.
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const folder = new URL('../../node_modules/postgres/', import.meta.url);

const CHANGES = [
  [
    `  function nextWrite(fn) {
    const x = socket.write(chunk, fn)
`,
    `  function nextWrite(fn) {
    if (socket === null) {
      chunk = nextWriteTimer = null
      error(Errors.connection('CONNECTION_CLOSED', options))
      return false
    }
    const x = socket.write(chunk, fn)
`,
  ],
  [
    `    clearImmediate(nextWriteTimer)
    socket.removeListener('data', data)
    socket.removeListener('connect', connected)
    idleTimer.cancel()
`,
    `    clearImmediate(nextWriteTimer)
    chunk = nextWriteTimer = null
    socket.removeListener('data', data)
    socket.removeListener('connect', connected)
    idleTimer.cancel()
`,
  ],
  [
    `        return fetchArrayTypes()
`,
    `        return fetchArrayTypes().catch(() => undefined)
`,
  ],
];

/** The driver's text with the faults mended. Throws when it is not the text that is known. */
export function mend(source) {
  return CHANGES.reduce((text, [before, after]) => {
    if (text.includes(after)) return text;
    if (text.split(before).length !== 2)
      throw new Error(
        'the postgres driver is not the one that infra/postgres-driver/patch.mjs knows: look whether its faults are mended there, then change or drop the patch',
      );
    return text.replace(before, () => after);
  }, source);
}

function main() {
  const { version } = JSON.parse(readFileSync(new URL('package.json', folder), 'utf8'));
  if (version !== '3.4.9')
    throw new Error(`postgres ${version} is installed, the patch is for 3.4.9: see infra/postgres-driver/patch.mjs`);
  for (const name of ['src/connection.js', 'cjs/src/connection.js']) {
    const file = new URL(name, folder);
    const source = readFileSync(file, 'utf8');
    const mended = mend(source);
    if (mended !== source) writeFileSync(file, mended);
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) main();
