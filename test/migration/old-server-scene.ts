import { Readable } from 'node:stream'
import { receiverUseCases } from '../../src/app/use-cases.ts'
import { createLog } from '../../src/base/log.ts'
import { createPostgresStore } from '../../src/content/postgres.ts'
import type { ContentStore } from '../../src/content/store.ts'
import { systemActor } from '../../src/db/audit.ts'
import { createSetMetadata } from '../../src/delivery/set-metadata.ts'
import { createDocumentMigrations, type NewMigration } from '../../src/migration/migrations.ts'
import { createMigrationPage } from '../../src/migration/page.ts'
import { createReadThrough } from '../../src/migration/read-through.ts'
import { upstreamLimits } from '../../src/migration/upstreams.ts'
import { createOutboundGuard } from '../../src/security/outbound.ts'
import { createKeyRing } from '../../src/security/seal.ts'
import { testConfig } from '../support/factories.ts'
import type { ServerFault } from '../support/old-content-server-faults.ts'
import { startOldContentServer } from '../support/old-content-server.ts'
import { startScene } from '../support/scene.ts'

const fileOf = (text: string, name = 'TOA01.csv') => ({ name, bytes: Readable.from([Buffer.from(text)]) as AsyncIterable<Buffer> })

/** Returns a link table with a row for each document. */
export const tableOf = (docIds: string[]) =>
  [
    'SAP_OBJECT;OBJECT_ID;ARCHIV_ID;ARC_DOC_ID;AR_OBJECT;AR_DATE',
    ...docIds.map((docId) => `BKPF;1000${docId};Z1;${docId};FIIINVOICE;20190302`),
  ].join('\r\n')

/**
 * Starts what judges the rows of migrations, without Temporal.
 * @param idleTimeoutMs how long an old content server may keep the relay waiting
 * @param around changes the store of what is fetched
 */
export const startOldServerScene = async ({
  documentMaxBytes,
  keptMaxMs = 60_000,
  idleTimeoutMs = upstreamLimits.idleTimeoutMs,
  around = (store) => store,
}: { documentMaxBytes?: number; keptMaxMs?: number; idleTimeoutMs?: number; around?: (store: ContentStore) => ContentStore } = {}) => {
  const config = { ...testConfig(), ...(documentMaxBytes !== undefined && { RELAY_DOCUMENT_MAX_BYTES: documentMaxBytes }) }
  const scene = await startScene()
  const { db } = scene
  const outbound = createOutboundGuard({ allowedCidrs: ['127.0.0.0/8'] })
  const useCases = receiverUseCases(db, config)
  const readThrough = createReadThrough({
    ...useCases,
    outbound,
    keyRing: createKeyRing(config.RELAY_SECRET_KEYS),
    writeTo: around(createPostgresStore(db)),
    launch: () => {},
    log: createLog('silent'),
    limits: { idleTimeoutMs },
    waits: { keptMaxMs },
  })
  const migrations = createDocumentMigrations(db)
  const page = createMigrationPage({
    ...useCases,
    db,
    setMetadata: createSetMetadata(db, { findConnector: () => undefined }),
    readThrough,
    limits: config,
  })

  /** Opens a repository whose documents are at an old content server. */
  const open = async (faults: ServerFault[] = []) => {
    const server = await startOldContentServer({ faults })
    const workspace = await scene.workspace()
    const { workspaceId, repositoryId } = workspace
    const setUpstream = (contRep: string) => {
      const unused = { auth_id: null, certificate: null, ca_certificate: null, proxy_url: null, allowed_cidrs: null }
      const upstream = { url: server.url, cont_rep: contRep, ...unused, delivers: false }
      return db('repositories')
        .where({ id: repositoryId })
        .update({ upstream: JSON.stringify(upstream) })
    }
    await setUpstream('Z1')
    const start = (text: string, changes: Partial<NewMigration> = {}) =>
      migrations.start(
        { workspaceId, repositoryId, mode: 'copy', documentsPerMinute: null, files: [fileOf(text)], ...changes },
        systemActor,
      )
    const judge = (id: string) => page(id, new AbortController().signal)
    const run = async (id: string) => {
      for (;;) {
        const { status } = await judge(id)
        if (status !== 'running') return migrations.find(workspaceId, id)
      }
    }
    const verdicts = async (id: string) => {
      const rows = await db('document_migration_rows')
        .where({ document_migration_id: id })
        .orderBy('position')
        .select('doc_id', 'verdict', 'reason')
      return rows.map((row: { doc_id: string; verdict: string; reason: string | null }) => [row.doc_id, row.verdict, row.reason])
    }
    const find = (id: string) => migrations.find(workspaceId, id)
    return { ...workspace, server, setUpstream, start, judge, run, find, verdicts, [Symbol.asyncDispose]: server.stop }
  }

  const stop = async () => {
    await readThrough.close()
    await outbound.close()
    await scene.stop()
  }
  return { db, migrations, open, [Symbol.asyncDispose]: stop }
}
