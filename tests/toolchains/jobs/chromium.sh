# user only: it takes long, and nothing in it asks who runs it
# needs: chromium
echo '<title>t</title><p id=p>before</p><script>document.getElementById("p").textContent = "script " + (6 * 7); new Worker("data:,postMessage(1)").onmessage = () => (document.title = "worker")</script>' > page.html
flags='--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking --disable-component-update --disable-sync --disable-dev-shm-usage'
timeout 60 chromium $flags --user-data-dir="$PWD/profile" --virtual-time-budget=2000 --dump-dom "file://$PWD/page.html" 2> /dev/null | grep -o '<p.*</p>'
timeout 60 chromium $flags --user-data-dir="$PWD/profile" --screenshot="$PWD/shot.png" --window-size=200,100 "file://$PWD/page.html" > /dev/null 2>&1
head -c 24 shot.png | od -An -tx1 | sed -n 2p
