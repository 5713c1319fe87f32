import { join } from 'node:path'
import { startServer, type Server, type ServerForm, type ServerOptions } from '../app/server.ts'
import { createDirectory } from '../content/files.ts'
import { readOrCreateSecretKey } from '../programs/data-dir.ts'
import { stablePort } from '../programs/ports.ts'
import { startStack } from './stack.ts'

/**
 * Everything for development and the demo: PostgreSQL and Temporal are started unless DATABASE_URL and TEMPORAL_ADDRESS are set. Data is kept in
 * RELAY_DATA_DIR and survives a restart. Destinations may be on this machine, so only this machine can reach the server unless RELAY_HOST says
 * otherwise.
 */
const development: ServerForm = {
  logFormat: 'pretty',
  startStack,
  defaults: async ({ RELAY_DATA_DIR: dataDir, DATABASE_URL, RELAY_SECRET_KEYS }) => {
    const contentDir = join(dataDir, 'contents')
    if (DATABASE_URL === undefined) await createDirectory(contentDir)
    return {
      // With a database of its own, the server also keeps contents where it keeps everything else.
      ...(DATABASE_URL === undefined && { CONTENT_DIR: contentDir }),
      RELAY_ALLOWED_PRIVATE_CIDRS: '127.0.0.0/8,::1/128',
      RELAY_HOST: '127.0.0.1',
      // A second server on this machine needs ports of its own, and operators expect the same ones after a restart.
      RELAY_PROBES_PORT: String(await stablePort(join(dataDir, 'probes.port'))),
      RELAY_WORKER_PORT: String(await stablePort(join(dataDir, 'worker.port'))),
      ...(RELAY_SECRET_KEYS.length === 0 && { RELAY_SECRET_KEYS: readOrCreateSecretKey(dataDir) }),
    }
  },
}

export const startDevServer = (variables: NodeJS.ProcessEnv, options: ServerOptions): Promise<Server> =>
  startServer(variables, development, options)
