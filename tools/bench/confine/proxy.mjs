// The proxy of `nd7 run`, with one host that is allowed by name: looked up, checked, each answer on the disk before it takes effect. The name resolves to a public
// address, and dialling that ends at the server on loopback, which no rule would let through. proxy.mjs HOST PORT ND7-HOME; prints its own port.
import { createServer } from 'node:net';
import { join } from 'node:path';
import { Egress } from '@nd7/egress';

const [host, port, nd7Home, relay] = process.argv.slice(2);
const { RunRecord } = await import(join(import.meta.dirname, '../../../apps/agent/dist/confine/record.js'));
const record = await RunRecord.open(nd7Home, 'required', (text) => console.error(text));
const source = { layer: 'user', policy: 'bench', file: null, line: null, text: 'network.allow' };
const rule = { host, ports: { from: 443, to: 443 }, allow: true, raw: false, privateAddresses: false, source };
const network = { hosts: [rule], bounds: [], listen: [], loopback: [], credentials: [] };
const egress = new Egress({
  rules: () => network,
  record: (decision, isRepeated) => record.answer(decision, isRepeated),
  resolve: () => Promise.resolve(['93.184.216.34']),
  at: () => ({ address: '127.0.0.1', port: Number(port) }),
  relay: relay || undefined,
});
const listener = createServer({ allowHalfOpen: true });
egress.serve(listener);
listener.listen(0, '127.0.0.1', () => process.stdout.write(`${JSON.stringify({ port: listener.address().port })}\n`));
process.stdin.resume().once('end', async () => {
  egress.close();
  listener.close();
  await record.close();
});
