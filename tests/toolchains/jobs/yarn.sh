# user only: it takes long, and nothing in it asks who runs it
# needs: node yarn
cat > package.json <<'J'
{ "name": "app", "version": "1.0.0", "private": true, "dependencies": { "greeter": "1.0.0" }, "scripts": { "hi": "greet yarn" } }
J
yarn install --registry "$REGISTRY" --silent --non-interactive
yarn run --silent hi
rm -rf node_modules
yarn install --frozen-lockfile --registry "$REGISTRY" --silent --non-interactive
yarn --silent greet again
