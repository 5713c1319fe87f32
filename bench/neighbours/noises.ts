// Noisy neighbours: load that one workspace causes on a shared relay. `script/bench isolation` measures what it costs a quiet workspace, and
// `script/faults` counts what becomes of its documents.
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { newId } from '../../src/base/ids.ts'
import type { Database } from '../../src/db/database.ts'
import type { createClient, WorkspaceClient } from '../../test/support/client.ts'
import { createByPut } from '../support/requests.ts'
import type { Body } from './bodies.ts'
import type { NoiseFacts, NoiseProcess, Sending } from './noise.ts'

export interface NoiseScene {
  baseUrl: string
  /** The database, for rows that no interface can make fast enough. */
  db: Database
  noise: NoiseProcess
  /** The noisy workspace. */
  neighbour: WorkspaceClient
  /** The quiet one. */
  quiet: Pick<ReturnType<typeof createClient>, 'wire' | 'name' | 'call'>
  /** A fraction of the noise, which proves that it can be made. */
  isQuick: boolean
}

export interface Noise {
  name: string
  /** What is done, as a phrase. */
  text: string
  /** Variables of an API process of its own, which is what is measured. The quiet workspace then only reads: nothing is created elsewhere. */
  apiVariables?: (noise: NoiseProcess) => Record<string, string>
  /** Begins, and waits until the noise is as loud as it becomes. */
  begin(scene: NoiseScene): Promise<void>
  /** Ends what the end of the sending does not: it is called after that. */
  end?: (scene: NoiseScene) => Promise<void>
  /** Says how loud it was. */
  describe(facts: NoiseFacts, scene: NoiseScene): string | Promise<string>
}

const askingAtOnce = 300
const waitingDocuments = 1_000
const drippingDocuments = 300
const subscriptions = 10
const migratedRows = 1_000_000
const servedRows = 50_000
// A statement has a time limit.
const insertedRows = 50_000
const floodPerSecond = 60
const filledWithinMs = 30_000
// A create that a silent store keeps waiting is refused within 35 s. Older versions took twice as long.
const refusedWithinMs = 70_000

/** Waits until something is so, but not for ever: a relay that takes less of the noise is measured with less. */
const upTo = async (ms: number, isSo: () => Promise<boolean>): Promise<void> => {
  for (const deadline = performance.now() + ms; performance.now() < deadline; await delay(250)) if (await isSo()) return
}

const times = (counts: Record<string, number>) =>
  Object.entries(counts)
    .map(([what, number]) => `${number.toLocaleString('en')} x ${what}`)
    .join(', ') || 'none'
const answered = ({ answers }: NoiseFacts) => `answers: ${times(answers)}`

const creates = ({ baseUrl, neighbour }: NoiseScene, repoId: string, body: Body = 'document'): Sending => {
  const { method, url, headers } = createByPut(`${baseUrl}/receiver/${neighbour.name}`, '{docId}', Buffer.alloc(0), repoId)
  return { method: method as 'PUT', urls: [url], headers: headers!, body }
}
/** A repository whose documents are stored and delivered nowhere. Without a connection, they would not be stored. */
const holding = ({ neighbour, noise }: NoiseScene) => neighbour.wire([`${noise.url}/accept`], { isActive: false })
const few = ({ isQuick }: NoiseScene, many: number) => (isQuick ? Math.min(many, 10) : many)

const asking: Noise = {
  name: 'asking',
  text: `a viewer's key asks for statistics, searches, audit log and requests, ${askingAtOnce} at a time, without a pause`,
  begin: async (scene) => {
    const { neighbour, noise, baseUrl } = scene
    const { repoId } = await holding(scene)
    // There is something to find.
    await noise.run({ ...creates(scene, repoId), parallel: 8, count: few(scene, 500) })
    await noise.forget()
    const paths = ['/stats', '/documents/search?q=zzz', '/audit-logs?per_page=100', '/requests?per_page=100']
    const urls = paths.map((path) => `${baseUrl}${neighbour.path}${path}`)
    await noise.begin({
      method: 'GET',
      urls,
      headers: { authorization: `Bearer ${neighbour.keys.viewer}` },
      parallel: few(scene, askingAtOnce),
    })
  },
  describe: answered,
}

/** A path with a regular expression that takes exponential time in an engine that tries one alternative after the other. */
export const slowPath = "$.list[?match(@.a, '(a|a|aa)*(a|a|aa)*b')].a"

const bombs: Noise = {
  name: 'bombs',
  text: 'PDF that inflates to 1 GiB, four a second, and XML of 14 MB of entities, one every two, are read as invoices; two at a time try a path whose regular expression is slow',
  begin: async (scene) => {
    const { neighbour, noise, baseUrl } = scene
    const { repoId, repositoryId } = await neighbour.wire([`${noise.url}/accept`])
    const documentId = await neighbour.sendDocument(repoId, 'delivered')
    await neighbour.change('POST', '/enrichments', {
      name: 'Invoices',
      repository_ids: [repositoryId],
      wait_seconds: 60,
      late_days: 0,
      steps: [{ kind: 'e_invoice' }],
    })
    // A relay that knows such expressions may refuse it.
    const slow = await neighbour.call('POST', '/enrichments', {
      name: 'Slow',
      repository_ids: [],
      is_active: false,
      http: { url: `${noise.url}/value` },
      steps: [{ kind: 'http', name: 'x', path: '/', fields: [{ name: 'v', path: slowPath }] }],
    })
    const tries: Sending[] = slow.json?.data
      ? [
          {
            method: 'POST',
            urls: [`${baseUrl}${neighbour.path}/enrichments/${slow.json.data.id}/try`],
            headers: { authorization: `Bearer ${neighbour.keys.member}`, 'content-type': 'application/json' },
            body: { json: { document_id: documentId } },
            parallel: 2,
          },
        ]
      : []
    // They are made before they are sent.
    await noise.run(
      { ...creates(scene, repoId, 'pdf bomb'), perSecond: 1, count: 1 },
      { ...creates(scene, repoId, 'xml bomb'), perSecond: 1, count: 1 },
    )
    await noise.forget()
    await noise.begin(
      { ...creates(scene, repoId, 'pdf bomb'), perSecond: 4 },
      { ...creates(scene, repoId, 'xml bomb'), perSecond: 0.5 },
      ...tries,
    )
  },
  describe: answered,
}

const hangingSource: Noise = {
  name: 'hanging-source',
  text: `${waitingDocuments.toLocaleString('en')} documents wait for business data of a system that accepts connections and never answers`,
  begin: async (scene) => {
    const { neighbour, noise, db } = scene
    const { repoId, repositoryId } = await neighbour.wire([`${noise.url}/accept`])
    await neighbour.change('POST', '/enrichments', {
      name: 'Hangs',
      repository_ids: [repositoryId],
      http: { url: `${noise.url}/hang` },
      wait_seconds: 3_600,
      late_days: 1,
      steps: [{ kind: 'http', name: 'invoice', path: '/x', fields: [{ name: 'vendor', path: '$.v' }] }],
    })
    await noise.run({ ...creates(scene, repoId), parallel: 8, count: few(scene, waitingDocuments) })
    // To begin with them is work like any other. What follows is the waiting.
    await upTo(scene.isQuick ? 0 : filledWithinMs, async () => {
      const due = db('deliveries').where({ workspace_id: neighbour.id }).where('begin_at', '<=', db.fn.now())
      return (await due.first('document_id')) === undefined
    })
  },
  describe: async ({ received }, { db, neighbour }) => {
    const [row] = await db('deliveries')
      .where({ workspace_id: neighbour.id })
      .whereIn('status', ['pending', 'retrying'])
      .count<{ total: string }[]>({ total: '*' })
    return `${Number(row!.total).toLocaleString('en')} wait, ${times({ 'a call of the system': received['hang'] ?? 0 })}`
  },
}

const dripping: Noise = {
  name: 'dripping-target',
  text: `${drippingDocuments} deliveries to a target that answers one byte a second, without end`,
  begin: async (scene) => {
    const { neighbour, noise } = scene
    const { repoId } = await neighbour.wire([`${noise.url}/drip`])
    await noise.run({ ...creates(scene, repoId), parallel: 8, count: few(scene, drippingDocuments) })
    let before = -1
    await upTo(scene.isQuick ? 0 : filledWithinMs / 2, async () => {
      const open = (await noise.facts()).open['drip'] ?? 0
      const isFull = open > 0 && open === before
      before = open
      await delay(2_000)
      return isFull
    })
  },
  describe: ({ open }) => `${open['drip'] ?? 0} attempts at once`,
}

const hangingSubscription: Noise = {
  name: 'hanging-subscription',
  text: `${subscriptions} event subscriptions whose receivers never answer, and twenty events a second`,
  begin: async (scene) => {
    const { neighbour, noise } = scene
    const { repoId } = await holding(scene)
    for (let index = 0; index < few(scene, subscriptions); index += 1) {
      const destinationId = await neighbour.create('/destinations', neighbour.webhook(`${noise.url}/hang/${index}`, `Silent ${index}`))
      await neighbour.create('/event-subscriptions', { name: `S${index}`, events: ['document.received'], destination_id: destinationId })
    }
    await noise.begin({ ...creates(scene, repoId), perSecond: few(scene, 20) })
  },
  describe: ({ answers, received }) => `${answers['201'] ?? 0} events, ${received['hang'] ?? 0} requests to the receivers`,
}

const failingDestinations: Noise = {
  name: 'failing-destinations',
  text: 'two more destinations of the same workspace, one that hangs and one that fails, get a document a second each',
  begin: async ({ quiet, noise, baseUrl }) => {
    const sendings: Sending[] = []
    for (const path of ['hang', 'fail']) {
      const { repoId } = await quiet.wire([`${noise.url}/${path}`])
      const { url, headers } = createByPut(`${baseUrl}/receiver/${quiet.name}`, '{docId}', Buffer.alloc(0), repoId)
      sendings.push({ method: 'PUT', urls: [url], headers: headers!, body: 'document', perSecond: 1 })
    }
    await noise.begin(...sendings)
  },
  end: async ({ quiet, noise }) => {
    const { json } = await quiet.call('GET', '/destinations')
    const bad = (json.data as { id: string; attributes: { config: { url: string } } }[]).filter(({ attributes }) =>
      attributes.config.url.startsWith(noise.url),
    )
    for (const { id } of bad) await quiet.call('DELETE', `/destinations/${id}`)
  },
  describe: ({ received }) => `${received['hang'] ?? 0} attempts hung, ${received['fail'] ?? 0} failed`,
}

const silentStore: Noise = {
  name: 'silent-store',
  text: 'creates into a content store (S3) that accepts connections and never answers, 16 at a time. The quiet workspace reads what another store has',
  apiVariables: ({ url }) => ({
    CONTENT_S3_BUCKET: 'silent',
    CONTENT_S3_ENDPOINT: url,
    CONTENT_S3_PATH_STYLE: 'true',
    CONTENT_S3_ACCESS_KEY_ID: 'bench',
    CONTENT_S3_SECRET_ACCESS_KEY: 'bench',
  }),
  begin: async (scene) => {
    const { repoId } = await holding(scene)
    await scene.noise.begin({ ...creates(scene, repoId), parallel: 16 })
    // What the first ones hold until they are refused, they hold together.
    await upTo(scene.isQuick ? 0 : refusedWithinMs, async () => Object.keys((await scene.noise.facts()).answers).length > 0)
  },
  describe: ({ answers, open }) => `${answered({ answers, open: {}, received: {} })}, ${open['silent'] ?? 0} calls of the store at once`,
}

/** Starts an old content server that has as many documents as a migration reaches. */
const startOldServer = async (documents: number) => {
  const child = fork(fileURLToPath(new URL('../first-read/old-server.ts', import.meta.url)), {
    env: { ...process.env, DELAY_MS: '0', DOCUMENTS: String(documents), BYTES: String(10 * 1024) },
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  })
  const [{ url }] = (await once(child, 'message')) as [{ url: string }]
  return { url, stop: () => child.kill() }
}

const createMigration = (): Noise => {
  let migrationId = ''
  let stopServer = () => {}
  return {
    name: 'migration',
    text: `a migration copies a list of ${migratedRows.toLocaleString('en')} documents from an old content server that answers at once`,
    begin: async (scene) => {
      const { neighbour, db } = scene
      const old = await startOldServer(scene.isQuick ? 100 : servedRows)
      stopServer = () => void old.stop()
      const repositoryId = await neighbour.create('/repositories', {
        repo_id: 'OLD',
        name: 'Old',
        upstream: { url: old.url, cont_rep: 'Z1' },
      })
      const rows = scene.isQuick ? 100 : migratedRows
      migrationId = newId()
      await db('document_migrations').insert({
        id: migrationId,
        workspace_id: neighbour.id,
        repository_id: repositoryId,
        repo_id: 'OLD',
        upstream_url: old.url,
        upstream_cont_rep: 'Z1',
        mode: 'copy',
        status: 'paused',
        lists: JSON.stringify([{ name: 'TOA01.csv', sha256: 'ab'.repeat(32), rows, otherRows: 0 }]),
        rows,
      })
      // As the command reads them from a list, in seconds instead of minutes.
      for (let first = 0; first < rows; first += insertedRows) {
        await db.raw(
          `
          insert into document_migration_rows (document_migration_id, position, list, line, doc_id, erp_object_type, erp_object_id)
          select :migrationId, n, 0, n + 2, 'D' || n, 'BKPF', '1000' || n
          from generate_series(:first::integer, :last::integer) as n
          `,
          { migrationId, first, last: Math.min(first + insertedRows, rows) - 1 },
        )
      }
      await db.raw('analyze document_migration_rows')
      await neighbour.change('POST', `/document-migrations/${migrationId}/resume`, {})
      await upTo(filledWithinMs, async () => (await neighbour.attributesOf(`/document-migrations/${migrationId}`)).copied > 0)
    },
    end: async ({ neighbour }) => {
      await neighbour.call('POST', `/document-migrations/${migrationId}/cancel`)
      stopServer()
    },
    describe: async (_, { neighbour }) => {
      const { copied } = await neighbour.attributesOf(`/document-migrations/${migrationId}`)
      return `${Number(copied).toLocaleString('en')} documents copied so far`
    },
  }
}

const flood: Noise = {
  name: 'flood',
  text: `${floodPerSecond} documents a second, three times what such a machine delivers`,
  begin: async (scene) => {
    const { repoId } = await scene.neighbour.wire([`${scene.noise.url}/accept`])
    await scene.noise.begin({ ...creates(scene, repoId), perSecond: few(scene, floodPerSecond) })
  },
  describe: ({ answers, received }) => `${answered({ answers, open: {}, received: {} })}, ${received['accept'] ?? 0} delivered`,
}

/** Every noise, those that leave most behind at the end. */
export const noises: Noise[] = [
  asking,
  bombs,
  dripping,
  hangingSubscription,
  failingDestinations,
  silentStore,
  createMigration(),
  flood,
  hangingSource,
]

/** Ends a noise, and removes what would go on without it. */
export const endNoise = async (noise: Noise, scene: NoiseScene): Promise<void> => {
  await scene.noise.end()
  await noise.end?.(scene)
  const { call } = scene.neighbour
  for (const path of ['/event-subscriptions', '/enrichments', '/destinations']) {
    const { json } = await call('GET', path)
    for (const { id } of (json?.data ?? []) as { id: string }[]) await call('DELETE', `${path}/${id}`)
  }
}
