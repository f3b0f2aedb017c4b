# user only: it takes long, and nothing in it asks who runs it
# needs: node pnpm
cat > package.json <<'J'
{ "name": "app", "version": "1.0.0", "dependencies": { "greeter": "1.0.0" }, "scripts": { "hi": "greet pnpm" } }
J
pnpm install --registry "$REGISTRY" --reporter=silent
pnpm run --silent hi
rm -rf node_modules
pnpm install --frozen-lockfile --offline --registry "$REGISTRY" --reporter=silent
pnpm exec greet again
ls -l node_modules | grep -c -- '->'
