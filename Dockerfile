# One image for all processes: the command is `api`, `worker` or any other verb of the command line.
FROM node:24-bookworm-slim AS build
WORKDIR /app
COPY package.json package-lock.json ./
# npm ci refuses a lock file generated with a registry that lacks packages for other platforms. npm install --no-save then installs the
# same versions from it.
RUN npm ci --no-audit --no-fund || npm install --no-save --no-audit --no-fund
COPY . .
RUN npm run build && npm prune --omit=dev --omit=optional

FROM node:24-bookworm-slim
ENV NODE_ENV=production
WORKDIR /app
COPY --from=build /app/package.json ./
COPY --from=build /app/node_modules ./node_modules
COPY --from=build /app/dist ./dist
USER node
EXPOSE 8080
ENTRYPOINT ["node", "dist/src/main.js"]
CMD ["api"]
