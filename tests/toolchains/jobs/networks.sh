# What lists network interfaces, and datagrams on the loopback.
# needs: node
# T2 fails: Datagram and netlink sockets are refused (Java's `NetworkInterface`, Node's `os.networkInterfaces`)
node -e '
  console.log(Object.keys(os.networkInterfaces()).includes("lo"));
  const socket = dgram.createSocket("udp4");
  socket.on("message", (text) => { console.log(String(text)); socket.close(); });
  socket.bind(0, "127.0.0.1", () => socket.send("datagram", socket.address().port));'
