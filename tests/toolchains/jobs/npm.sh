# needs: node npm
cat > package.json <<'J'
{ "name": "app", "version": "1.0.0", "dependencies": { "greeter": "1.0.0" },
  "scripts": { "test": "node --test test.js", "prebuild": "echo before", "build": "greet built > out.txt" } }
J
cat > test.js <<'J'
const test = require('node:test');
const assert = require('node:assert');
test('greets', () => assert.equal(require('greeter').greet('you'), 'hello you'));
J
export npm_config_registry="$REGISTRY"
npm install --no-audit --no-fund --silent
rm -rf node_modules
npm ci --no-audit --no-fund | sed 's/ in .*//'
cat node_modules/greeter/built
npm test --silent | grep -E '^# (pass|fail)'
npx --no-install greet npx
npm run --silent build && cat out.txt
npm pack --silent
npm ls
