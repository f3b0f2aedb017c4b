# Unix sockets of a program's own, in the project and in the temporary folder; servers on the loopback.
# needs: node python3 curl
cat > s.mjs <<'J'
import { once } from 'node:events';
import { mkdtempSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
for (const path of ['./own.sock', join(mkdtempSync(join(tmpdir(), 's-')), 's')]) {
  const server = createServer((socket) => socket.pipe(socket)).listen(path);
  await once(server, 'listening');
  const socket = connect(path);
  socket.end('echo');
  console.log(String((await once(socket, 'data'))[0]));
  server.close();
}
J
node s.mjs
python3 - <<'P'
import array, os, socket
a, b = socket.socketpair()
socket.send_fds(a, [b'x'], [os.open('/etc/hostname', os.O_RDONLY)]); print('descriptor', len(socket.recv_fds(b, 1, 1)[1]))
server = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET); server.bind('seq'); server.listen()
client = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET); client.connect('seq'); peer, _ = server.accept(); client.send(b'packet'); print(peer.recv(9))
import struct; print('peer', struct.unpack('3i', peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[1] == os.getuid())
os.makedirs('deep/er'); os.symlink('deep', 'link')
for name in ('here', 'deep/there', 'deep/er/../up', 'link/linked', os.path.abspath('whole')):
    server = socket.socket(socket.AF_UNIX); server.bind(name); server.listen(); client = socket.socket(socket.AF_UNIX); client.connect(server.getsockname()); print('name', client.getpeername() == server.getsockname() == name)
for family, host in ((socket.AF_INET, '127.0.0.1'), (socket.AF_INET6, '::1')):
    server = socket.create_server((host, 0), family=family); client = socket.create_connection(server.getsockname()[:2]); print(server.accept()[0].getsockname()[0])
P
echo page > page && python3 -u -m http.server --bind 127.0.0.1 0 > served 2>&1 & 
while ! port=$(grep -o 'port [0-9]*' served | cut -d' ' -f2) || [ -z "$port" ]; do sleep 0.1; done
curl -sS --noproxy '*' "http://127.0.0.1:$port/page" && curl -sS "http://localhost:$port/page" && kill %1
curl -sS "$REGISTRY/greeter" | head -c 17
