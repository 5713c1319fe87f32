import { createHash, randomBytes } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { createKey } from '../commands/key.ts'
import { createWorkspace } from '../commands/workspace.ts'
import type { Running } from '../compose.ts'
import { openDatabase } from '../db/database.ts'
import { startServer, type Server, type StartOptions } from '../server.ts'
import { createClient, unwrap, type RelayClient } from '../../clients/typescript/src/index.ts'
import { documentWorkflowId } from '../../workflows/messages.ts'
import { invoicePdf } from './invoice.ts'
import { startSftpSink } from './sftp-sink.ts'
import { startWebhookSink } from './webhook-sink.ts'

const deliveryTimeoutMs = 60_000
const requestTimeoutMs = 30_000

/** The main job, told step by step: a document goes all the way from a source system to two targets. */
export const runDemo = async (variables: NodeJS.ProcessEnv, options: StartOptions): Promise<Running & { delivered: boolean }> => {
  const { say } = options
  const running: Running[] = []
  const stop = async () => {
    for (const part of running.splice(0).toReversed()) await part.stop()
  }
  try {
    const server = await startServer({ ...variables, RELAY_DATA_DIR: variables['RELAY_DATA_DIR'] ?? '.demo' }, options)
    running.push(server)
    const sink = await startWebhookSink()
    running.push(sink)
    const filesDirectory = join(server.config.RELAY_DATA_DIR, 'sftp')
    const sftp = await startSftpSink(filesDirectory, 'inbox')
    running.push(sftp)

    const slugs = `demo/run-${Date.now()}`
    const key = await makeWorkspace(server, slugs)
    say('')
    say(`1. A workspace ${slugs} with an API key; the API is at ${server.baseUrl}/api/${slugs}`)

    const api = createClient({
      baseUrl: server.baseUrl,
      workspace: slugs,
      apiKey: key,
      fetch: (request) => fetch(request, { signal: AbortSignal.timeout(requestTimeoutMs) }),
    })
    const sftpDestination = await made(
      api.POST('/destinations', {
        body: {
          name: 'Archive',
          connector_type: 'sftp',
          config: { host: sftp.host, port: sftp.port, directory: 'inbox' },
          credentials: { username: sftp.username, password: sftp.password },
        },
      }),
    )
    const webhookDestination = await made(
      api.POST('/destinations', {
        body: {
          name: 'Workflow',
          connector_type: 'webhook',
          config: { url: sink.url },
          credentials: { secret: `whsec_${randomBytes(24).toString('base64')}` },
        },
      }),
    )
    const repository = await made(api.POST('/repositories', { body: { repo_id: 'Z1', name: 'Incoming invoices' } }))
    await made(
      api.POST('/connections', {
        body: {
          name: 'Invoices to archive and workflow',
          repository_ids: [repository],
          destination_ids: [sftpDestination, webhookDestination],
        },
      }),
    )
    say(`2. Two targets: an SFTP server at ${sftp.host}:${sftp.port} and a webhook at ${sink.url}; repository Z1 is wired to both`)

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
    say(`3. The source system sends a PDF of ${pdf.length} bytes to ${receiver}: ${created.status} ${created.statusText}`)
    if (created.status !== 201) throw new Error(created.headers.get('x-errordescription') ?? 'the document was refused')

    const document = await untilSettled(api)
    for (const { destination_name, status, path, attempts } of document.attributes.deliveries) {
      say(`4. ${destination_name}: ${status} after ${attempts} attempt${attempts === 1 ? '' : 's'}, ${path}`)
    }
    const file = await readFile(join(filesDirectory, 'inbox', 'Z1', docId, 'data')).catch(() => Buffer.alloc(0))
    const equal = createHash('sha256').update(file).digest('hex') === sha256 && sink.calls.some((call) => call.sha256 === sha256)
    const delivered = document.attributes.status === 'delivered' && equal
    say(
      `5. The document is ${document.attributes.status}; what arrived is ${equal ? 'byte for byte what was sent' : 'NOT what was sent'} (SHA-256 ${sha256})`,
    )
    say('')
    say('Look around:')
    if (server.temporalUiUrl) {
      say(`  its workflow     ${server.temporalUiUrl}/namespaces/default/workflows/${encodeURIComponent(documentWorkflowId(document.id))}`)
    }
    say(`  its state        curl -H 'Authorization: Bearer ${key}' ${server.baseUrl}/api/${slugs}/documents/${document.id}`)
    say(`  the files        ${filesDirectory}`)
    return { delivered, stop }
  } catch (thrown) {
    await stop()
    throw thrown
  }
}

const makeWorkspace = async (server: Server, slugs: string): Promise<string> => {
  const db = openDatabase(server.config, 'demo')
  try {
    await createWorkspace(db, slugs)
    return (await createKey(db, { workspace: slugs, level: 'admin', name: 'demo' })).key
  } finally {
    await db.destroy()
  }
}

/** @returns the id of what was made */
const made = async (answer: Promise<{ data?: { data: { id: string } }; error?: unknown; response: Response }>): Promise<string> =>
  (await unwrap(answer)).data.id

const untilSettled = async (api: RelayClient) => {
  const deadline = Date.now() + deliveryTimeoutMs
  const [received] = (await unwrap(api.GET('/documents'))).data
  for (;;) {
    const { data: document } = await unwrap(api.GET('/documents/{id}', { params: { path: { id: received!.id } } }))
    if (document.attributes.status === 'delivered' || document.attributes.status === 'failed' || Date.now() > deadline) return document
    await delay(200)
  }
}
