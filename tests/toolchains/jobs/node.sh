# needs: node
cat > all.mjs <<'J'
import assert from 'node:assert';
import { execFileSync, fork, spawn } from 'node:child_process';
import cluster from 'node:cluster';
import { once } from 'node:events';
import * as fs from 'node:fs';
import { createServer } from 'node:http';
import { Worker } from 'node:worker_threads';

if (cluster.isWorker) {
  createServer((_, answer) => answer.end('from a worker')).listen(0, '127.0.0.1', function () { process.send(this.address().port); });
} else if (process.argv[2] === 'child') {
  process.send({ got: process.argv[3] });
} else {
  const worker = new Worker('require("worker_threads").parentPort.postMessage(6 * 7)', { eval: true });
  console.log('worker', (await once(worker, 'message'))[0]);
  const child = fork(import.meta.filename, ['child', 'word']);
  console.log('fork', (await once(child, 'message'))[0].got);
  const clustered = cluster.fork();
  const [port] = await once(clustered, 'message');
  console.log('cluster', await (await fetch(`http://127.0.0.1:${port}/`)).text());
  clustered.kill();
  const server = createServer((_, answer) => answer.end('served')).listen(0);
  await once(server, 'listening');
  console.log('fetch', await (await fetch(`http://localhost:${server.address().port}/`)).text());
  server.close();
  console.log('exec', execFileSync('sh', ['-c', 'echo $0', 'out'], { encoding: 'utf8' }).trim());
  const detached = spawn('sleep', ['60'], { detached: true, stdio: 'ignore' });
  process.kill(-detached.pid, 'SIGTERM');
  console.log('detached', (await once(detached, 'exit'))[1]);
  fs.cpSync('all.mjs', 'copies/one.mjs', { recursive: true });
  fs.cpSync('copies', 'more', { recursive: true });
  fs.writeFileSync('new', 'x', { flag: 'wx' });
  assert.throws(() => fs.writeFileSync('new', 'x', { flag: 'wx' }), /EEXIST/);
  fs.renameSync('new', 'newer');
  fs.symlinkSync('newer', 'link');
  fs.linkSync('newer', 'second');
  fs.utimesSync('newer', 1, 2);
  fs.chmodSync('newer', 0o640);
  fs.truncateSync('newer', 0);
  const { nlink, mode, mtimeMs } = fs.statSync('second');
  console.log('files', fs.readdirSync('.', { recursive: true }).sort().join(' '), nlink, (mode & 0o777).toString(8), mtimeMs > 2000);
  const file = fs.openSync('big', 'w+');
  fs.writevSync(file, [Buffer.alloc(100_000, 'a'), Buffer.alloc(100_000, 'b')]);
  fs.fdatasyncSync(file);
  fs.futimesSync(file, 1, 2);
  fs.ftruncateSync(file, 150_000);
  console.log('descriptor', fs.fstatSync(file).size, fs.fstatSync(file).mtimeMs > 0);
  process.exit();
}
J
node all.mjs
