// Listeners that hear one session only, while somebody else of this machine connects to them as often as he can.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { connect, type Server } from 'node:net';
import { SeenListeners } from './seen-listeners.js';

/** Of another user, which root alone can be; each is cut off unheard. */
const FLOOD = `const { connect } = require('node:net');
setInterval(() => { for (let i = 0; i < 5; i++) { const s = connect(process.argv[1], '127.0.0.1', () => s.destroy()); s.on('error', () => 0); } }, 10);
setTimeout(() => process.exit(), 60000);`;

(process.platform === 'linux' && process.geteuid?.() === 0 ? it : it.skip)(
  'hears the session while another user connects again and again [root]',
  async () => {
    const seen = await SeenListeners.open(1, () => undefined);
    const [served] = seen.served as [Server];
    served.on('connection', (socket) => socket.end('heard'));
    seen.admit(process.pid);
    const port = seen.ports[0] as number;
    const other = spawn(process.execPath, ['-e', FLOOD, String(port)], { uid: 65_534, gid: 65_534, stdio: 'ignore' });
    try {
      // Until those that wait would be as many as the kernel keeps.
      await new Promise((done) => setTimeout(done, 3_000));
      const began = performance.now();
      for (let i = 0; i < 5; i++) {
        const socket = connect(port, '127.0.0.1');
        const [bytes] = (await once(socket, 'data')) as [Buffer];
        expect(String(bytes)).toBe('heard');
        socket.destroy();
      }
      // A list for each connection heard the first after the last of the others.
      expect(performance.now() - began).toBeLessThan(20_000);
    } finally {
      other.kill('SIGKILL');
      seen.close();
    }
  },
);
