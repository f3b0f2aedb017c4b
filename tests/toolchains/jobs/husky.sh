# An install whose prepare sets hooks: it may say that it could not, and does not break the install.
# needs: node npm git husky
git init -q . && mkdir -p node_modules && cp -r "$HUSKY" node_modules/husky
echo '{ "name": "app", "version": "1.0.0", "scripts": { "prepare": "node node_modules/husky/bin.js" } }' > package.json
npm run --silent prepare > /dev/null 2>&1 && echo prepared
