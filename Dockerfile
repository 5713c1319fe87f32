# One image for all processes: the command is `api`, `worker` or any other verb of the command line. docs/install.md#container-image says
# how to build and run it. The target `all` also has the Temporal server, for production on one machine. The base needs glibc, a shell, and Node 24 with npm. The steps use paths in /app only: test/image.release.test.ts
# executes them without an engine, too.
ARG BASE_IMAGE=node:24-bookworm-slim

# Compiles the relay.
FROM ${BASE_IMAGE} AS build
ARG NPM_CONFIG_REGISTRY
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
COPY clients/check-source/package.json clients/check-source/
COPY clients/typescript/package.json clients/typescript/
COPY script/check-installed.ts script/
# Not npm ci: it refuses a lock file without the packages for other platforms. npm install --no-save installs the locked versions, and
# check-installed.ts fails if it did not.
RUN npm install --no-save --no-audit --no-fund --ignore-scripts
RUN node script/check-installed.ts
COPY . .
RUN npm run build
RUN mkdir bin && ln -s ../dist/src/main.js bin/relay && chmod 755 dist/src/main.js
# The files have the modes of the checkout, which an umask of 077 makes unreadable for the user of the image.
RUN chmod -R a+rX,go-w dist bin deploy LICENSE

# Installs the packages that the relay needs at run time, and nothing else.
FROM ${BASE_IMAGE} AS packages
ARG NPM_CONFIG_REGISTRY
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
COPY script/check-installed.ts script/sbom.ts script/
RUN npm install --no-save --no-audit --no-fund --ignore-scripts --workspaces=false --omit=dev --omit=optional
RUN node script/check-installed.ts
# npm sbom reports a package that package.json names and the image lacks as an error.
RUN npm pkg delete devDependencies optionalDependencies workspaces scripts && node script/sbom.ts > sbom.cdx.json
# Keeps the native module of the Temporal SDK for this platform only, and removes its source, source maps and declarations of types.
RUN cd node_modules/@temporalio/core-bridge \
 && native=$(node -p "require('./common.js').getPrebuiltTargetName()") \
 && test -f "releases/$native/index.node" \
 && find releases -mindepth 1 -maxdepth 1 ! -name "$native" -exec rm -r {} + \
 && rm -r sdk-core src ts bridge-macros
RUN find node_modules -type f \( -name '*.map' -o -name '*.d.ts' -o -name '*.d.mts' -o -name '*.d.cts' \) -delete
# The native module verifies the certificate of Temporal with the certificates of the system, which slim images lack. Node has a copy of
# Mozilla's.
RUN if [ -s /etc/ssl/certs/ca-certificates.crt ]; then cp /etc/ssl/certs/ca-certificates.crt .; \
    else node -p "tls.rootCertificates.join('\n')" > ca-certificates.crt; fi
RUN chmod -R a+rX,go-w package.json sbom.cdx.json ca-certificates.crt

FROM ${BASE_IMAGE} AS relay
ARG BASE_IMAGE
ARG VERSION=0.1.0
ARG REVISION=
LABEL org.opencontainers.image.title="Document Relay" \
      org.opencontainers.image.description="Receives documents from an enterprise source system and delivers each to every connected destination" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.base.name="${BASE_IMAGE}" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
ENV NODE_ENV=production
# Probes and metrics are asked from outside of the container. Its ports are reached through its engine only.
ENV RELAY_PROBES_HOST=0.0.0.0
ENV PATH=/app/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
WORKDIR /app
COPY --from=packages /app/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=packages /app/node_modules ./node_modules
COPY --from=packages /app/package.json /app/sbom.cdx.json ./
COPY --from=build /app/LICENSE ./
COPY --from=build /app/dist ./dist
COPY --from=build /app/bin ./bin
COPY --from=build /app/deploy ./deploy
# A number: Kubernetes cannot tell whether a named user is root. It is the user "node" of the official base images.
USER 1000:1000
EXPOSE 8080 8081 8082
# Alive, not ready: a process that waits for PostgreSQL or Temporal needs no restart.
HEALTHCHECK --interval=30s --timeout=5s --start-period=60s CMD ["node", "dist/src/health.js"]
ENTRYPOINT ["relay"]
CMD ["api"]

# docker build --target all: `relay server` runs Temporal on the database of the relay (deploy/compose/one-machine.yml).
FROM relay AS all
LABEL org.opencontainers.image.licenses="Apache-2.0 AND MIT"
COPY --from=temporalio/server:1.31.2 /usr/local/bin/temporal-server /usr/local/bin/
COPY --from=temporalio/admin-tools:1.31.2 /usr/local/bin/temporal-sql-tool /usr/local/bin/
# Is linked statically, like the other two.
COPY --from=temporalio/ui:2.52.1 /home/ui-server/ui-server /usr/local/bin/
ENV RELAY_TEMPORAL=local
# What it has there, it writes at each start.
ENV RELAY_DATA_DIR=/tmp/relay
CMD ["server"]

# Without --target.
FROM relay
