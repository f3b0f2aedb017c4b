// An HTTPS server on loopback: /small answers some bytes, /N answers N of them. server.mjs KEY CERTIFICATE; prints its port.
import { readFileSync } from 'node:fs';
import { createServer } from 'node:https';

const [key, cert] = process.argv.slice(2).map((file) => readFileSync(file));
const block = Buffer.alloc(1 << 18, 'nd7');

createServer({ key, cert, noDelay: true }, (asked, answer) => {
  if (asked.url === '/small') {
    answer.end(block.subarray(0, 200));
    return;
  }
  let left = Number(asked.url.slice(1));
  const more = () => {
    while (left > 0) {
      const part = block.subarray(0, Math.min(left, block.length));
      left -= part.length;
      if (!answer.write(part)) return void answer.once('drain', more);
    }
    answer.end();
  };
  more();
}).listen(0, '127.0.0.1', function listening() {
  process.stdout.write(`${JSON.stringify({ port: this.address().port })}\n`);
});
process.stdin.resume().once('end', () => process.exit());
