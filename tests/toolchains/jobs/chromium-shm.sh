# Without the flag that Playwright and Puppeteer give.
# user only: it takes long, and nothing in it asks who runs it
# needs: chromium
# T2 may fail: `--disable-dev-shm-usage`
echo '<p>shared' > page.html
flags='--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking --disable-component-update --disable-sync'
timeout 60 chromium $flags --user-data-dir="$PWD/profile" --dump-dom "file://$PWD/page.html" 2> /dev/null | grep -o '<p>.*'
