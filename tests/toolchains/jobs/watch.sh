# Watchers by inotify.
# needs: node
cat > watch.mjs <<'J'
import { appendFileSync, mkdirSync, renameSync, watch, writeFileSync } from 'node:fs';
mkdirSync('src/deep', { recursive: true });
const seen = new Set();
const wanted = ['change a', 'rename b', 'rename c'];
const note = (event, name) => {
  seen.add(`${event} ${name}`);
  if (!wanted.every((each) => seen.has(each))) return;
  console.log(wanted.join(', '));
  process.exit();
};
for (const folder of ['src', 'src/deep']) watch(folder, note);
setInterval(() => {
  appendFileSync('src/a', 'x');
  writeFileSync('src/.draft', 'x');
  renameSync('src/.draft', 'src/b');
  writeFileSync('src/deep/c', 'x');
  renameSync('src/deep/c', 'src/deep/d');
}, 100);
J
timeout 20 node watch.mjs
touch log
timeout 20 tail -n +1 -f log > tailed &
for i in 1 2 3; do echo "line $i" >> log; sleep 0.1; done
while [ "$(wc -l < tailed)" -lt 3 ]; do sleep 0.1; done
kill %1
cat tailed
