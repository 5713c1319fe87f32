import { createHash, randomBytes } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { createClient, unwrap, type EnrichmentInput, type RelayClient } from '../../../clients/typescript/src/index.ts'
import { documentWorkflowId } from '../../../workflows/ids.ts'
import { createKey } from '../../access/key-administration.ts'
import { createSignInLinks } from '../../access/sign-in-links.ts'
import { stopAll, type Running } from '../../app/runtime.ts'
import type { Server, ServerOptions } from '../../app/server.ts'
import { countOf } from '../../base/count-of.ts'
import { withDatabase } from '../../db/with-database.ts'
import { createKeyRing } from '../../security/seal.ts'
import { createWorkspace } from '../../workspace/administration.ts'
import { startDevServer } from '../dev-server.ts'
import { invoicePdf, addSampleData } from './sample-data.ts'
import { startSftpSink } from './sftp-sink.ts'
import { startSourceSystem } from './source-system.ts'
import { startWebhookSink } from './webhook-sink.ts'

const deliveryTimeoutMs = 60_000
const requestTimeoutMs = 30_000
const linkLifetimeMs = 15 * 60_000
// The stand-in for SAP has linked a document when the relay asks for the third time, after three seconds; later on a machine that stalls.
const enrichmentWaitSeconds = 30

/**
 * Starts everything and delivers a PDF from a demo source system to two local destinations, printing each step.
 * @param options `isOnce`: ends after the first document. Otherwise more are sent, for the screens of the console
 * @returns `delivered`: `true` if both destinations received exactly the bytes that were sent
 */
export const runDemo = async (
  variables: NodeJS.ProcessEnv,
  { isOnce, ...options }: ServerOptions & { isOnce: boolean },
): Promise<Running & { delivered: boolean }> => {
  const { say } = options
  const running: Running[] = []
  const stop = () => stopAll(running)
  try {
    const server = await startDevServer({ ...variables, RELAY_DATA_DIR: variables['RELAY_DATA_DIR'] ?? '.demo' }, options)
    running.push(server)
    const sink = await startWebhookSink()
    running.push(sink)
    const filesDirectory = join(server.config.RELAY_DATA_DIR, 'sftp')
    const sftp = await startSftpSink(filesDirectory, 'inbox')
    running.push(sftp)
    const sap = await startSourceSystem()
    running.push(sap)

    const slugs = `demo/run-${Date.now()}`
    const { id: keyId, key } = await createDemoWorkspace(server, slugs)
    say('')
    say(`1. Created workspace ${slugs} and an API key. Its API is at ${server.baseUrl}/api/${slugs}`)

    const api = createClient({
      baseUrl: server.baseUrl,
      workspace: slugs,
      apiKey: key,
      fetch: (request) => fetch(request, { signal: AbortSignal.timeout(requestTimeoutMs) }),
    })
    const sftpDestination = await createdId(
      api.POST('/destinations', {
        body: {
          name: 'Archive',
          connector_type: 'sftp',
          config: { host: sftp.host, port: sftp.port, directory: 'inbox' },
          credentials: { username: sftp.username, password: sftp.password },
        },
      }),
    )
    const webhookDestination = await createdId(
      api.POST('/destinations', {
        body: {
          name: 'Workflow',
          connector_type: 'webhook',
          config: { url: sink.url },
          credentials: { secret: `whsec_${randomBytes(24).toString('base64')}` },
        },
      }),
    )
    const repository = await createdId(api.POST('/repositories', { body: { repo_id: 'Z1', name: 'Incoming invoices' } }))
    await createdId(
      api.POST('/connections', {
        body: {
          name: 'Invoices to archive and workflow',
          repository_ids: [repository],
          destination_ids: [sftpDestination, webhookDestination],
        },
      }),
    )
    say('2. Connected repository Z1 to two destinations on this machine:')
    say(`   Archive, an SFTP server at ${sftp.host}:${sftp.port}`)
    say(`   Workflow, a webhook at ${sink.url}`)

    await unwrap(
      api.PATCH('/settings', {
        body: { rfc: { url: sap.url, client: '100', credentials: sap.credentials, allowed_functions: sap.functions } },
      }),
    )
    for (const body of demoEnrichments(repository, sap)) await createdId(api.POST('/enrichments', { body }))
    say(`   A stand-in for SAP at ${sap.url} knows the invoices.`)

    const docId = randomBytes(16).toString('hex').toUpperCase()
    const pdf = invoicePdf(docId)
    const sha256 = createHash('sha256').update(pdf).digest('hex')
    const receiver = `${server.baseUrl}/receiver/${slugs}`
    const created = await fetch(`${receiver}?create&pVersion=0045&contRep=Z1&docId=${docId}&compId=data`, {
      method: 'PUT',
      headers: { 'content-type': 'application/pdf' },
      body: new Uint8Array(pdf),
      signal: AbortSignal.timeout(requestTimeoutMs),
    })
    say(`3. The source system sent a PDF of ${pdf.length} bytes to ${receiver}: ${created.status} ${created.statusText}`)
    if (created.status !== 201) throw new Error(created.headers.get('x-errordescription') ?? 'The receiver refused the document')

    const document = await waitUntilDelivered(api)
    const { metadata, fields } = document.attributes
    say(`   The relay asked SAP what it is, until SAP had linked it: ${metadata.erp_object_type} ${metadata.erp_object_id},`)
    say(
      `   ${Object.entries(fields)
        .map(([name, value]) => `${name} ${value}`)
        .join(', ')}.`,
    )
    say('4. Deliveries, one per destination:')
    for (const { destination_name, status, path, attempts } of document.attributes.deliveries) {
      say(`   ${destination_name}: ${status} after ${countOf(attempts, 'attempt', 'attempts')}, ${path}`)
    }
    const file = await readFile(join(filesDirectory, 'inbox', 'Z1', docId, 'data')).catch(() => Buffer.alloc(0))
    const isUnchanged = createHash('sha256').update(file).digest('hex') === sha256 && sink.calls.some((call) => call.sha256 === sha256)
    const delivered = document.attributes.status === 'delivered' && isUnchanged
    say(`5. The status of the document is "${document.attributes.status}".`)
    say(
      isUnchanged
        ? `   Both destinations received it byte for byte (SHA-256 ${sha256}).`
        : `   The destinations did NOT both receive the bytes that were sent (SHA-256 ${sha256}).`,
    )
    if (isOnce) return { delivered, stop }

    say('')
    running.push(await addSampleData({ api, receiver, archiveId: sftpDestination, requestTimeoutMs }))
    say('6. Sent 15 more documents. Some fail, some are retried, and some are held by an inactive connection.')
    say('')
    const token = createSignInLinks(createKeyRing(server.config.RELAY_SECRET_KEYS)).create(keyId, linkLifetimeMs)
    say('Explore:')
    say(`  Console          ${server.baseUrl}/console/#sign-in=${token}`)
    say(`                   The link signs in for ${linkLifetimeMs / 60_000} minutes. After that, use the key ${key}`)
    if (server.temporalUiUrl) {
      const workflowId = documentWorkflowId({ documentId: document.id, workspace: slugs, repoId: 'Z1', docId, compId: 'data' })
      say(`  Its workflow     ${server.temporalUiUrl}/namespaces/default/workflows/${encodeURIComponent(workflowId)}`)
    }
    say(`  Its status       curl -H 'Authorization: Bearer ${key}' ${server.baseUrl}/api/${slugs}/documents/${document.id}`)
    say(`  Archived files   ${filesDirectory}`)
    say(`  Documentation    ${server.baseUrl}/docs`)
    return { delivered, stop }
  } catch (thrown) {
    await stop().catch(() => {})
    throw thrown
  }
}

/** Enrichments for the two kinds of invoices that arrive in one repository: each is for documents of its type. */
const demoEnrichments = (
  repositoryId: string,
  { url, itemsPath, credentials }: Awaited<ReturnType<typeof startSourceSystem>>,
): EnrichmentInput[] => {
  const common = { repository_ids: [repositoryId], wait_seconds: enrichmentWaitSeconds }
  const key = ['CompanyCode', 'AccountingDocument', 'FiscalYear']
  const filter = key.map((name, index) => `${name}%20eq%20'{erp_object_id[${['0:4', '4:14', '14:18'][index]}]}'`).join('%20and%20')
  return [
    {
      ...common,
      name: 'MM invoices',
      steps: [
        { kind: 'link' },
        {
          kind: 'rfc',
          name: 'invoice',
          when: { erp_object_type: ['RMRP'] },
          function: 'BAPI_INCOMINGINVOICE_GETDETAIL',
          imports: { INVOICEDOCNUMBER: '{erp_object_id[0:10]}', FISCALYEAR: '{erp_object_id[10:14]}' },
          fields: [
            { name: 'vendor', path: '$.exports.HEADERDATA.DIFF_INV' },
            { name: 'total', path: '$.exports.HEADERDATA.GROSS_AMOUNT', type: 'number' },
            { name: 'currency', path: '$.exports.HEADERDATA.CURRENCY' },
          ],
        },
      ],
    },
    {
      ...common,
      name: 'FI invoices',
      http: { url },
      credentials: { username: credentials.user, password: credentials.password },
      steps: [
        { kind: 'link' },
        {
          kind: 'http',
          name: 'journal_entry',
          when: { erp_object_type: ['BKPF'] },
          path: `${itemsPath}?$format=json&$filter=${filter}`,
          fields: [
            { name: 'vendor', path: '$.d.results[*].Supplier' },
            { name: 'total', path: '$.d.results[*].AmountInTransactionCurrency', type: 'number' },
            { name: 'currency', path: '$.d.results[*].TransactionCurrency' },
          ],
        },
      ],
    },
  ]
}

const createDemoWorkspace = (server: Server, slugs: string): Promise<{ id: string; key: string }> =>
  withDatabase(server.config, 'demo', async (db) => {
    await createWorkspace(db, slugs)
    return createKey(db, { workspace: slugs, level: 'admin', name: 'demo' })
  })

/** Returns the id of the resource that a request created. */
const createdId = async (answer: Promise<{ data?: { data: { id: string } }; error?: unknown; response: Response }>): Promise<string> =>
  (await unwrap(answer)).data.id

/** Polls the only document until it is delivered or failed, at most `deliveryTimeoutMs`. */
const waitUntilDelivered = async (api: RelayClient) => {
  const deadline = Date.now() + deliveryTimeoutMs
  const [received] = (await unwrap(api.GET('/documents'))).data
  for (;;) {
    const { data: document } = await unwrap(api.GET('/documents/{id}', { params: { path: { id: received!.id } } }))
    if (document.attributes.status === 'delivered' || document.attributes.status === 'failed' || Date.now() > deadline) return document
    await delay(200)
  }
}
