import { execFile } from 'node:child_process'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { ListObjectsV2Command } from '@aws-sdk/client-s3'
import type { TestWorkflowEnvironment } from '@temporalio/testing'
import { bulkRetryWorkflowId, searchAttributes } from '../../workflows/messages.ts'
import { startHttpTarget, type HttpTarget } from '../support/http-target.ts'
import { startS3Server, type S3Server } from '../support/s3-server.ts'
import { startSshd, type Sshd } from '../support/sshd.ts'
import { startTemporalDevServer } from '../support/temporal.ts'
import { until } from '../support/until.ts'
import { startRelay, type RelayedDocument, type StartedRelay } from '../support/relay.ts'

// What operators see in the UI of a real server, held against what the API says, step by step.

const run = promisify(execFile)

let env: TestWorkflowEnvironment
let relay: StartedRelay
let web: HttpTarget
let files: Sshd
let bucket: S3Server

beforeAll(async () => {
  env = await startTemporalDevServer()
  relay = await startRelay(env)
  ;[web, files, bucket] = await Promise.all([startHttpTarget(), startSshd(), startS3Server()])
})
afterAll(async () => {
  await Promise.all([web.stop(), files.stop(), bucket.stop()])
  await relay.stop()
  await env.teardown()
})
beforeEach(() => {
  web.arrivals.length = 0
  answerWith(200)
})

const answerWith = (status: number) => web.answerWith((_, response) => response.writeHead(status).end())

/** The target hangs, until it is told to go on. */
const hold = () => {
  let go = () => {}
  web.answerWith((_, response) => {
    go = () => response.writeHead(403).end()
  })
  return () => go()
}

const targets = () => [
  { name: 'web', config: { url: web.origin } },
  {
    name: 'files',
    connector: 'sftp' as const,
    config: { host: '127.0.0.1', port: files.port, host_key_sha256: files.hostKeyFingerprint },
    credentials: { username: files.username, private_key: files.privateKey },
  },
  {
    name: 'bucket',
    connector: 'objstore' as const,
    config: { bucket: bucket.bucket, region: 'us-east-1', endpoint: bucket.endpoint, path_style: true },
    credentials: { access_key_id: bucket.accessKeyId, secret_access_key: bucket.secretAccessKey },
  },
]

const untilIs = <T>(what: string, expected: T, read: () => Promise<T> | T) =>
  until(`${what} is ${String(expected)}`, read, (value) => value === expected)

const relayStatus = async (document: RelayedDocument, name?: string) =>
  (await document.handle(name).describe()).typedSearchAttributes.get(searchAttributes.status)

/** In the API, the delivery's workflow and the document's workflow alike. */
const untilAllSay = async (document: RelayedDocument, name: string, status: string) => {
  await untilIs('the API', status, document.status)
  await untilIs('the delivery in the UI', status, () => relayStatus(document, name))
  await untilIs('the document in the UI', status, () => relayStatus(document))
  expect(await document.status()).toBe(status)
}

const arrivedFiles = async () => {
  const entries = await readdir(files.directory, { recursive: true, withFileTypes: true })
  const found = entries.filter((entry) => entry.isFile())
  return Promise.all(found.map((entry) => readFile(join(entry.parentPath, entry.name), 'utf8')))
}

it('API and UI say the same at every step of a document that fails, is retried, fails and is retried by the command line', async () => {
  answerWith(403)
  await relay.run(async ({ wire }) => {
    const { receive, destinations } = await wire(targets())
    const document = await receive('to three targets')
    await untilAllSay(document, 'web', 'failed')
    for (const name of ['files', 'bucket']) {
      await untilIs(name, 'delivered', async () => (await document.deliveries())[name]!.status)
    }
    expect(await document.deliveries()).toMatchObject({
      web: { status: 'failed', attempts: 1 },
      files: { status: 'delivered', attempts: 1 },
      bucket: { status: 'delivered', attempts: 1 },
    })
    const needsAHand = `WorkflowType = 'delivery' and ExecutionStatus = 'Running' and RelayStatus = 'failed'`
    const listed: string[] = []
    for await (const execution of env.client.workflow.list({ query: needsAHand })) listed.push(execution.workflowId)
    expect(listed).toEqual([`document/${document.id}/${destinations['web']}`])

    const go = hold()
    expect((await document.retry()).status).toBe(200)
    await untilIs('the target', 2, () => web.arrivals.length)
    await untilAllSay(document, 'web', 'retrying')
    go()
    await untilAllSay(document, 'web', 'failed')

    const goOn = hold()
    const signal = ['workflow', 'signal', '--address', env.address, '--workflow-id', listed[0]!, '--name', 'retry']
    await run(process.env.TEST_TEMPORAL_BIN!, signal)
    await untilIs('the target', 3, () => web.arrivals.length)
    await untilAllSay(document, 'web', 'retrying')
    answerWith(200)
    goOn()
    await untilAllSay(document, 'web', 'failed')

    await run(process.env.TEST_TEMPORAL_BIN!, [...signal, '--input', '{}'])
    await document.handle().result()
    await untilAllSay(document, 'web', 'delivered')
    expect(await document.deliveries()).toMatchObject({ web: { attempts: 4 }, files: { attempts: 1 }, bucket: { attempts: 1 } })
    expect(await arrivedFiles()).toEqual(['to three targets'])
    expect((await bucket.client.send(new ListObjectsV2Command({ Bucket: bucket.bucket }))).KeyCount).toBe(1)
  })
})

it('a delivery that needs a hand says whose it is, what happened and what to do, and the filters of the docs find it', async () => {
  answerWith(403)
  await relay.run(async ({ wire }) => {
    const { receive, workspaceSlug, destinations } = await wire([{ name: 'web', config: { url: web.origin } }])
    const document = await receive('hello', 'DOC1')
    await untilAllSay(document, 'web', 'failed')
    const [whole, delivery] = await Promise.all([document.handle().describe(), document.handle('web').describe()])
    expect([whole.workflowId, delivery.workflowId]).toEqual([`document/${document.id}`, `document/${document.id}/${destinations['web']}`])
    expect(await whole.staticSummary()).toBe('Z1/DOC1/data to web')
    expect(await delivery.staticSummary()).toBe('Z1/DOC1/data to web (webhook)')

    const workspace = `acme/${workspaceSlug}`
    const common = { RelayWorkspace: workspace, RelayRepository: 'Z1', RelayDocument: document.id, RelayStatus: 'failed' }
    const attributesOf = ({ typedSearchAttributes }: typeof whole) =>
      Object.fromEntries(Object.values(searchAttributes).map((key) => [key.name, typedSearchAttributes.get(key)]))
    expect(attributesOf(whole)).toEqual(common)
    expect(attributesOf(delivery)).toEqual({ ...common, RelayDestination: destinations['web'], RelayConnector: 'webhook' })

    const detailsOf = async (name?: string) =>
      (await document.handle(name).query<{ currentDetails: string }>('__temporal_workflow_metadata')).currentDetails
    expect(await detailsOf('web')).toMatch(/^\*\*failed\*\*: .*403.*\. What to do: correct destination web, then retry the document$/)
    expect(await detailsOf()).toMatch(/^- web: \*\*failed\*\*: .*403/)

    const page = await readFile(new URL('../../docs/operations.md', import.meta.url), 'utf8')
    const filters = Object.fromEntries([...page.matchAll(/^\| (.+) \| ``(.+)`` \|$/gm)].map(([, what, filter]) => [what!, filter!]))
    const found: Record<string, string[]> = {}
    for (const [what, filter] of Object.entries(filters)) {
      const query = filter
        .replace(/(?<=RelayWorkspace = ')[^']*/, workspace)
        .replace(/(?<=RelayDestination = ')[^']*/, destinations['web']!)
        .replace(/(?<=RelayDocument = ')[^']*/, document.id)
        .replace(/(?<=RelayConnector = ')[^']*/, 'webhook')
      const ids: string[] = []
      for await (const { workflowId } of env.client.workflow.list({ query })) ids.push(workflowId)
      found[what] = ids.filter((id) => id.startsWith(whole.workflowId)).toSorted()
    }
    const both = [whole.workflowId, delivery.workflowId]
    expect(found).toEqual({
      'what needs a hand': [delivery.workflowId],
      'what is being retried': [],
      'everything of one workspace': both,
      'everything towards one destination': [delivery.workflowId],
      'one kind of target': [delivery.workflowId],
      'everything but the chores': both,
      'releases and cancellations at work': [],
      'documents that need a hand': [whole.workflowId],
      'what nobody retried in time': [],
      'bulk retries at work': [],
      'all of one document': both,
    })
  })
})

// the server that skips time tells no parent of such an end
it('a terminated delivery has failed in API and UI, and its retry is delivered', async () => {
  await relay.run(async ({ wire }) => {
    const { receive } = await wire([{ name: 'web', config: { url: web.origin } }])
    answerWith(503)
    const document = await receive()
    await untilAllSay(document, 'web', 'retrying')
    await document.handle('web').terminate('not wanted any more')
    await untilIs('the API', 'failed', document.status)
    await untilIs('the document in the UI', 'failed', () => relayStatus(document))
    expect(await relay.db('deliveries').where({ document_id: document.id }).first('last_error')).toEqual({
      last_error: 'its workflow was ended by hand',
    })
    answerWith(200)
    expect((await document.retry()).status).toBe(200)
    await untilIs('the API', 'delivered', document.status)
    await untilIs('the delivery in the UI', 'delivered', () => relayStatus(document, 'web'))
  })
})

it('of what a deleted destination was to get, API and UI say the same', async () => {
  answerWith(403)
  await relay.run(async ({ wire }) => {
    const { receive, call, destinations } = await wire([{ name: 'web', config: { url: web.origin } }])
    const document = await receive()
    await untilAllSay(document, 'web', 'failed')
    expect((await call('DELETE', `/destinations/${destinations['web']}`)).status).toBe(204)
    await untilIs('the delivery in the API', 'cancelled', async () => (await document.deliveries())['web']!.status)
    await untilIs('the delivery in the UI', 'cancelled', () => relayStatus(document, 'web'))
    await untilIs('the document', 'FAILED', async () => (await document.handle().describe()).status.name)
    expect([await document.status(), await relayStatus(document)]).toEqual(['failed', 'failed'])
  })
})

it('one command retries everything that waits at a destination', async () => {
  answerWith(403)
  await relay.run(async ({ wire }) => {
    const { receive, destinations } = await wire([{ name: 'web', config: { url: web.origin } }])
    const documents = [await receive('one'), await receive('two')]
    for (const document of documents) await untilAllSay(document, 'web', 'failed')
    answerWith(200)
    const query = `WorkflowType = 'delivery' and ExecutionStatus = 'Running' and RelayStatus = 'failed' and RelayDestination = '${destinations['web']}'`
    const signal = ['workflow', 'signal', '--address', env.address, '--name', 'retry', '--reason', 'the target is back', '--yes']
    await run(process.env.TEST_TEMPORAL_BIN!, [...signal, '--query', query])
    for (const document of documents) await untilAllSay(document, 'web', 'delivered')
    expect(web.arrivals).toHaveLength(4)
  })
})

it('a bulk retry goes through everything that failed, and shows how far it is', async () => {
  answerWith(403)
  await relay.run(async ({ wire, launcher }) => {
    const { receive, call } = await wire([{ name: 'web', config: { url: web.origin } }])
    const documents: RelayedDocument[] = []
    for (let made = 0; made < 12; made += 1) documents.push(await receive(`number ${made}`))
    for (const document of documents) await untilIs('the API', 'failed', document.status)
    answerWith(200)

    const { json, status } = await call('POST', '/documents/retry', {})
    expect(status).toBe(202)
    const { id } = json.data
    const shown = async () => (await call('GET', `/bulk-retries/${id}`)).json.data.attributes
    await untilIs('the bulk retry', 'completed', async () => (await shown()).status)
    expect(await shown()).toMatchObject({ matched_documents: 12, retried_documents: 12, retried_deliveries: 12 })
    const workflow = env.client.workflow.getHandle(bulkRetryWorkflowId(id))
    expect(await workflow.result()).toMatchObject({ status: 'completed', retriedDocuments: 12 })
    expect((await workflow.fetchHistory()).events!.length).toBeLessThan(20)

    await launcher.sweep()
    for (const document of documents) await untilIs('the API', 'delivered', document.status)
    expect(web.arrivals).toHaveLength(24)
    expect((await call('POST', '/documents/retry', { dry_run: true })).json.data.attributes.matched_documents).toBe(0)
  })
})
