# The tools of this very repository, on a small project.
# user only: it takes long, and nothing in it asks who runs it
# needs: node
mkdir src
cat > tsconfig.json <<'J'
{ "compilerOptions": { "strict": true, "target": "es2022", "module": "nodenext", "rootDir": "src", "outDir": "dist", "types": [], "incremental": true }, "include": ["src"] }
J
echo '{ "name": "app", "version": "1.0.0", "type": "module" }' > package.json
echo '<script type="module" src="/src/main.ts"></script>' > index.html
echo 'export const add = (a: number, b: number): number => a + b;' > src/sum.ts
printf 'import { add } from "./sum.js"; console.log("sum");\nconsole.log(add(1, 2));' > src/main.ts
node "$REPOSITORY/node_modules/typescript/bin/tsc" -p .
node dist/main.js
cat > build.mjs <<J
import { build, createServer } from '$REPOSITORY/node_modules/vite/dist/node/index.js';
await build({ logLevel: 'silent', build: { outDir: 'web', minify: true } });
const server = await createServer({ logLevel: 'silent', server: { port: 0, host: '127.0.0.1' } });
await server.listen();
const text = await (await fetch(\`http://127.0.0.1:\${server.httpServer.address().port}/src/sum.ts\`)).text();
console.log('served', text.includes('a + b') && !text.includes(': number'));
await server.close();
J
node build.mjs
ls web web/assets | sed 's/-.*\./-HASH./'
echo 'test("adds", () => expect(1 + 2).toBe(3));' > sum.test.js
node "$REPOSITORY/node_modules/jest/bin/jest.js" --rootDir . --cacheDirectory "$PWD/.cache" 2>&1 | grep ^Tests:
node "$REPOSITORY/node_modules/prettier/bin/prettier.cjs" --write --log-level warn src; cat src/main.ts
