# needs: node
# T2 fails: and so are abstract unix sockets, also the session's own
node -e 'const s = net.createServer((c) => c.end("abstract")).listen("\0nd7-own", () => net.connect("\0nd7-own").on("data", (d) => { console.log(String(d)); s.close(); }))'
