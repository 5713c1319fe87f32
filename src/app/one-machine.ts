import { join } from 'node:path'
import { UserError } from '../base/errors.ts'
import { refuseTooNew } from '../db/migrations.ts'
import { explainConnection, requireServer } from '../db/require-server.ts'
import { withDatabase } from '../db/with-database.ts'
import { lockDataDir } from '../programs/data-dir-lock.ts'
import { findTemporalServer, findTemporalUi } from '../temporal-server/find-programs.ts'
import { ownTemporal } from '../temporal-server/ownership.ts'
import { prepareSchemas } from '../temporal-server/schemas.ts'
import { startTemporalServer } from '../temporal-server/server.ts'
import { startTemporalUi } from '../temporal-server/ui.ts'
import { stopAll, type Running } from './runtime.ts'
import type { ServerForm, Stack, StackOptions } from './server.ts'

/**
 * Starts Temporal on the database of the relay.
 * @throws `UserError` if a setting is missing, PostgreSQL cannot be used, or another relay runs Temporal on the database
 */
const startTemporal = async ({ dataDir, config, log, say, signal }: StackOptions): Promise<Stack> => {
  const { DATABASE_URL: databaseUrl } = config
  if (!databaseUrl) throw new UserError('RELAY_TEMPORAL=local needs DATABASE_URL: Temporal keeps its state in the same database.')
  if (config.RELAY_SECRET_KEYS.length === 0)
    throw new UserError('RELAY_SECRET_KEYS is not set: RELAY_SECRET_KEYS=k1:$(openssl rand -base64 32). Keep it with the backups.')
  if (config.temporal.connectionOptions.address !== undefined)
    throw new UserError('RELAY_TEMPORAL=local and TEMPORAL_ADDRESS exclude each other: remove one of them.')
  const running: Running[] = []
  const stop = () => stopAll(running)
  try {
    const lock = await lockDataDir(dataDir)
    running.push({ stop: () => lock.release() })
    await withDatabase(config, 'server', async (db) => {
      await requireServer(db, config)
      // Before Temporal changes anything there.
      await refuseTooNew(db)
    })
    const programs = await findTemporalServer({ config, say, signal })
    const { RELAY_TEMPORAL_UI: listen } = config
    const uiProgram = listen === undefined ? undefined : await findTemporalUi({ config, say, signal })
    say(`Starting Temporal ${await prepareSchemas(config, programs, signal)} ...`)
    const ownership = await ownTemporal(config, log, { signal })
    running.push({ stop: ownership.release })
    const folder = join(dataDir, 'temporal')
    const temporal = await startTemporalServer({ folder, config, programs, ownership, log, say, signal })
    running.push(temporal)
    const { address: temporalAddress, ended } = temporal
    if (listen === undefined || uiProgram === undefined) return { databaseUrl, temporalAddress, temporalUiUrl: null, ended, stop }
    const ui = await startTemporalUi({ folder, program: uiProgram, listen, temporalAddress, config, log, say, signal })
    running.push(ui)
    return { databaseUrl, temporalAddress, temporalUiUrl: ui.url, ended, stop }
  } catch (thrown) {
    await stop().catch(() => {})
    throw explainConnection(thrown) ?? thrown
  }
}

/** Production on one machine: PostgreSQL is there, and Temporal is started on it. Everything else is as with `relay api` and `relay worker`. */
export const oneMachine: ServerForm = { logFormat: 'json', startStack: startTemporal, defaults: async () => ({}) }
