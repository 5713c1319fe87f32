import { execFile } from 'node:child_process'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { isDeepStrictEqual, promisify } from 'node:util'
import { ListObjectsV2Command } from '@aws-sdk/client-s3'
import { bulkRetryWorkflowId } from '../../workflows/ids.ts'
import { searchAttributes } from '../../workflows/options.ts'
import { startHttpTarget } from '../support/http-target.ts'
import { startRelay, type RelayedDocument } from '../support/relay.ts'
import { startS3Server } from '../support/s3-server.ts'
import { share } from '../support/share.ts'
import { startSshd } from '../support/sshd.ts'
import { temporalVariables } from '../support/temporal-cluster.ts'
import { startTemporalServer } from '../support/temporal-server.ts'
import { until } from '../support/until.ts'

// Compares what operators see in the UI of a real Temporal server with what the API reports, step by step.

const run = promisify(execFile)
/** Runs the CLI of Temporal. */
const temporal = (args: string[]) => run(process.env.TEST_TEMPORAL_BIN!, args, { env: { ...process.env, ...temporalVariables(env) } })

const env = share(await startTemporalServer())
const relay = share(await startRelay(env))
const [web, files, bucket] = await Promise.all([startHttpTarget().then(share), startSshd().then(share), startS3Server().then(share)])
beforeEach(() => {
  web.arrivals.length = 0
  answerWith(200)
})

const answerWith = (status: number) => web.answerWith((_, response) => response.writeHead(status).end())

/** Makes the target wait with its answer 403 to a request. @returns a function that sends the answer */
const holdAnswer = () => {
  let release = () => {}
  web.answerWith((_, response) => {
    release = () => response.writeHead(403).end()
  })
  return () => release()
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

const untilEqual = <T>(description: string, expected: T, read: () => Promise<T> | T) =>
  until(`${description} is ${String(expected)}`, read, (value) => value === expected)

const statusInUi = async (document: RelayedDocument, name?: string) =>
  (await document.handle(name).describe()).typedSearchAttributes.get(searchAttributes.status)

/** Waits until the API, the workflow of the delivery and the workflow of the document report this status. */
const untilAllReport = async (document: RelayedDocument, name: string, status: string) => {
  await untilEqual('status in the API', status, document.status)
  await untilEqual('status of the delivery in the UI', status, () => statusInUi(document, name))
  await untilEqual('status of the document in the UI', status, () => statusInUi(document))
  expect(await document.status()).toBe(status)
}

/** Lists workflows. The list lags behind what a workflow says of itself. */
const listIds = async (query: string) => {
  const ids: string[] = []
  for await (const { workflowId } of env.client.workflow.list({ query })) ids.push(workflowId)
  return ids
}

const readDeliveredFiles = async () => {
  const entries = await readdir(files.directory, { recursive: true, withFileTypes: true })
  const found = entries.filter((entry) => entry.isFile())
  return Promise.all(found.map((entry) => readFile(join(entry.parentPath, entry.name), 'utf8')))
}

test('API and UI agree at every step of a document that fails, is retried, fails again and is retried from the command line', async () => {
  answerWith(403)
  await relay.run(async ({ createRoutes }) => {
    const { receive } = await createRoutes(targets())
    const document = await receive('to three targets')
    await untilAllReport(document, 'web', 'failed')
    for (const name of ['files', 'bucket']) {
      await untilEqual(`status of ${name}`, 'delivered', async () => (await document.deliveries())[name]!.status)
    }
    expect(await document.deliveries()).toMatchObject({
      web: { status: 'failed', attempts: 1 },
      files: { status: 'delivered', attempts: 1 },
      bucket: { status: 'delivered', attempts: 1 },
    })
    const failedDeliveries = `WorkflowType = 'delivery' and ExecutionStatus = 'Running' and RelayStatus = 'failed'`
    const listed = await until(
      'the failed delivery is listed',
      () => listIds(failedDeliveries),
      (ids) => ids.length > 0,
    )
    expect(listed).toEqual([document.handle('web').workflowId])

    const answerRetry = holdAnswer()
    expect((await document.retry()).status).toBe(200)
    await untilEqual('number of requests', 2, () => web.arrivals.length)
    await untilAllReport(document, 'web', 'retrying')
    answerRetry()
    await untilAllReport(document, 'web', 'failed')

    const answerSignal = holdAnswer()
    const signal = ['workflow', 'signal', '--workflow-id', listed[0]!, '--name', 'retry']
    await temporal(signal)
    await untilEqual('number of requests', 3, () => web.arrivals.length)
    await untilAllReport(document, 'web', 'retrying')
    answerWith(200)
    answerSignal()
    await untilAllReport(document, 'web', 'failed')

    await temporal([...signal, '--input', '{}'])
    await document.handle().result()
    await untilAllReport(document, 'web', 'delivered')
    expect(await document.deliveries()).toMatchObject({ web: { attempts: 4 }, files: { attempts: 1 }, bucket: { attempts: 1 } })
    expect(await readDeliveredFiles()).toEqual(['to three targets'])
    expect((await bucket.client.send(new ListObjectsV2Command({ Bucket: bucket.bucket }))).KeyCount).toBe(1)
  })
})

test('a failed delivery shows its document, its error and a remedy in the UI, and the documented filters find it', async () => {
  answerWith(403)
  await relay.run(async ({ createRoutes }) => {
    const { receive, workspaceSlug, destinations } = await createRoutes([{ name: 'web', config: { url: web.origin } }])
    const document = await receive('hello', 'DOC1')
    await untilAllReport(document, 'web', 'failed')
    const [parent, delivery] = await Promise.all([document.handle().describe(), document.handle('web').describe()])
    expect([parent.workflowId, delivery.workflowId]).toEqual([
      `document/acme/${workspaceSlug}/Z1/DOC1/data/${document.id}`,
      `document/acme/${workspaceSlug}/Z1/DOC1/data/${document.id}/${destinations['web']}`,
    ])
    expect(await parent.staticSummary()).toBe('Z1/DOC1/data to web')
    expect(await delivery.staticSummary()).toBe('Z1/DOC1/data to web (webhook)')

    const workspace = `acme/${workspaceSlug}`
    const common = {
      RelayWorkspace: workspace,
      RelayRepository: 'Z1',
      RelayDocId: 'DOC1',
      RelayDocument: document.id,
      RelayStatus: 'failed',
    }
    const attributesOf = ({ typedSearchAttributes }: typeof parent) =>
      Object.fromEntries(
        Object.values(searchAttributes).flatMap((key) => {
          const value = typedSearchAttributes.get(key)
          return value === undefined ? [] : [[key.name, value]]
        }),
      )
    expect(attributesOf(parent)).toEqual(common)
    expect(attributesOf(delivery)).toEqual({
      ...common,
      RelayDestination: destinations['web'],
      RelayDestinationName: 'web',
      RelayErrorCode: 'http_403',
    })

    interface Metadata {
      currentDetails: string
      definition: Record<'signalDefinitions' | 'queryDefinitions', { name: string; description?: string }[]>
    }
    const metadataOf = (name?: string) => document.handle(name).query<Metadata>('__temporal_workflow_metadata')
    const detailsOf = async (name?: string) => (await metadataOf(name)).currentDetails
    for (const { definition } of [await metadataOf('web'), await metadataOf()]) {
      const own = [...definition.signalDefinitions, ...definition.queryDefinitions].filter(({ name }) => !name.startsWith('__'))
      expect(own.filter(({ description }) => !description)).toEqual([])
    }
    expect(await detailsOf('web')).toMatch(
      /^\*\*failed\*\*: .*403.*\. Give the account of destination web the missing permissions, then retry the document\.$/,
    )
    expect(await detailsOf()).toMatch(/^- web: \*\*failed\*\*: .*403/)

    const page = await readFile(new URL('../../docs/temporal.md', import.meta.url), 'utf8')
    const filters = Object.fromEntries([...page.matchAll(/^\| (.+) \| ``(.+)`` \|$/gm)].map(([, purpose, filter]) => [purpose!, filter!]))
    const findAll = async () => {
      const found: Record<string, string[]> = {}
      for (const [purpose, filter] of Object.entries(filters)) {
        const query = filter
          .replace(/(?<=RelayWorkspace = ')[^']*/, workspace)
          .replace(/(?<=RelayDestinationName = ')[^']*/, 'web')
          .replace(/(?<=RelayDocId = ')[^']*/, 'DOC1')
          .replace(/(?<=RelayDocument = ')[^']*/, document.id)
          .replace(/(?<=RelayErrorCode = ')[^']*/, 'http_403')
        found[purpose] = (await listIds(query)).filter((id) => id.startsWith(parent.workflowId)).toSorted()
      }
      return found
    }
    const both = [parent.workflowId, delivery.workflowId]
    const expected = {
      'Needs attention': [parent.workflowId],
      Retrying: [],
      Held: [],
      'Failed maintenance': [],
      'failed deliveries that wait for a retry by an operator': [delivery.workflowId],
      'open deliveries whose last error has one code': [delivery.workflowId],
      'documents, deliveries and bulk retries of one workspace': both,
      'all deliveries to one destination': [delivery.workflowId],
      'all workflows of one docId': both,
      'all workflows of one document': both,
      'all workflows of one business object': [],
      'all workflows except maintenance jobs': both,
      'releases and cancellations in progress': [],
      'deliveries that were not retried in time': [],
      'bulk retries in progress': [],
    }
    await until('each filter finds what it should', findAll, (found) => isDeepStrictEqual(found, expected))
  })
})

// On the real server, because the server that skips time does not notify a parent when its child is terminated.
test('a terminated delivery is failed in API and UI, and a retry delivers it', async () => {
  await relay.run(async ({ createRoutes }) => {
    const { receive } = await createRoutes([{ name: 'web', config: { url: web.origin } }])
    answerWith(503)
    const document = await receive()
    await untilAllReport(document, 'web', 'retrying')
    await document.handle('web').terminate('not wanted any more')
    await untilEqual('status in the API', 'failed', document.status)
    await untilEqual('status of the document in the UI', 'failed', () => statusInUi(document))
    expect(await relay.db('deliveries').where({ document_id: document.id }).first('last_error')).toEqual({
      last_error: 'the delivery workflow was terminated',
    })
    answerWith(200)
    expect((await document.retry()).status).toBe(200)
    await untilEqual('status in the API', 'delivered', document.status)
    await untilEqual('status of the delivery in the UI', 'delivered', () => statusInUi(document, 'web'))
  })
})

test('a delivery that an operator cancels leaves its document failed until it is retried or acknowledged', async () => {
  await relay.run(async ({ createRoutes }) => {
    const { receive, call } = await createRoutes([{ name: 'web', config: { url: web.origin } }, ...targets().slice(1, 2)])
    const groups = async () => (await call('GET', '/failures')).json.data.map((group: { attributes: unknown }) => group.attributes)
    answerWith(503)
    const [retried, acknowledged] = [await receive('one'), await receive('two')]
    for (const document of [retried, acknowledged]) {
      await untilAllReport(document, 'web', 'retrying')
      await untilEqual('status of files', 'delivered', async () => (await document.deliveries())['files']!.status)
    }
    await temporal(['workflow', 'cancel', '--workflow-id', retried.handle('web').workflowId])
    await untilAllReport(retried, 'web', 'failed')
    await temporal(['workflow', 'cancel', '--workflow-id', acknowledged.handle().workflowId])
    await untilEqual('status in the API', 'failed', acknowledged.status)
    const ended = {
      web: { status: 'failed', ended_by: 'workflow_cancelled', last_error: { code: null, message: 'the delivery workflow was cancelled' } },
      files: { status: 'delivered', ended_by: null },
    }
    expect([await retried.deliveries(), await acknowledged.deliveries()]).toMatchObject([ended, ended])
    expect(await groups()).toMatchObject([{ status: 'failed', error_code: null, documents: 2 }])

    answerWith(200)
    expect((await retried.retry()).status).toBe(200)
    await untilEqual('status in the API', 'delivered', retried.status)
    await untilEqual('status of the delivery in the UI', 'delivered', () => statusInUi(retried, 'web'))
    expect((await retried.deliveries())['web']).toMatchObject({ ended_by: null, last_error: null })
    expect((await call('POST', `/documents/${acknowledged.id}/acknowledge`)).status).toBe(200)
    expect([await groups(), await acknowledged.status()]).toEqual([[], 'failed'])
  })
})

test('a delivery to a deleted destination is cancelled in API and UI', async () => {
  answerWith(403)
  await relay.run(async ({ createRoutes }) => {
    const { receive, call, destinations } = await createRoutes([{ name: 'web', config: { url: web.origin } }])
    const document = await receive()
    await untilAllReport(document, 'web', 'failed')
    expect((await call('DELETE', `/destinations/${destinations['web']}`)).status).toBe(204)
    await untilEqual('status of the delivery in the API', 'cancelled', async () => (await document.deliveries())['web']!.status)
    await untilEqual('status of the delivery in the UI', 'cancelled', () => statusInUi(document, 'web'))
    await untilEqual('status of the document workflow', 'FAILED', async () => (await document.handle().describe()).status.name)
    expect([await document.status(), await statusInUi(document)]).toEqual(['failed', 'failed'])
    expect((await document.deliveries())['web']).toMatchObject({ ended_by: 'destination_deleted' })
  })
})

test('one command retries all failed deliveries to a destination', async () => {
  answerWith(403)
  await relay.run(async ({ createRoutes }) => {
    const { receive, destinations } = await createRoutes([{ name: 'web', config: { url: web.origin } }])
    const documents = [await receive('one'), await receive('two')]
    for (const document of documents) await untilAllReport(document, 'web', 'failed')
    answerWith(200)
    const query = `WorkflowType = 'delivery' and ExecutionStatus = 'Running' and RelayStatus = 'failed' and RelayDestination = '${destinations['web']}'`
    await until('both deliveries are listed', async () => (await listIds(query)).length === 2)
    const signal = ['workflow', 'signal', '--name', 'retry', '--reason', 'the target is back', '--yes']
    await temporal([...signal, '--query', query])
    for (const document of documents) await untilAllReport(document, 'web', 'delivered')
    expect(web.arrivals).toHaveLength(4)
  })
})

test('a bulk retry retries every failed delivery and reports its progress', async () => {
  answerWith(403)
  await relay.run(async ({ createRoutes, launcher }) => {
    const { receive, call, workspaceSlug } = await createRoutes([{ name: 'web', config: { url: web.origin } }])
    const documents: RelayedDocument[] = []
    for (let index = 0; index < 12; index += 1) documents.push(await receive(`number ${index}`))
    for (const document of documents) await untilEqual('status in the API', 'failed', document.status)
    answerWith(200)

    const { json, status } = await call('POST', '/documents/retry', {})
    expect(status).toBe(202)
    const { id } = json.data
    const readBulkRetry = async () => (await call('GET', `/bulk-retries/${id}`)).json.data.attributes
    await untilEqual('status of the bulk retry', 'completed', async () => (await readBulkRetry()).status)
    expect(await readBulkRetry()).toMatchObject({ matched_documents: 12, retried_documents: 12, retried_deliveries: 12 })
    const workflow = env.client.workflow.getHandle(bulkRetryWorkflowId({ workspace: `acme/${workspaceSlug}`, bulkRetryId: id }))
    expect(await workflow.result()).toMatchObject({ status: 'completed', retriedDocuments: 12 })
    expect((await workflow.fetchHistory()).events!.length).toBeLessThan(20)

    await launcher.sweep()
    for (const document of documents) await untilEqual('status in the API', 'delivered', document.status)
    expect(web.arrivals).toHaveLength(24)
    expect((await call('POST', '/documents/retry', { dry_run: true })).json.data.attributes.matched_documents).toBe(0)
  })
})

test('what a target has lost is delivered again, to it alone', async () => {
  await relay.run(async ({ createRoutes, launcher }) => {
    const { receive, call, destinations } = await createRoutes([targets()[0]!, targets()[1]!])
    const document = await receive('lost')
    await untilEqual('status in the API', 'delivered', document.status)
    const again = { destination_id: destinations['web'], again: true, document_ids: [document.id] }
    const { json, status } = await call('POST', '/documents/deliver', again)
    expect(status).toBe(202)
    await until('the target has it twice', async () => {
      await launcher.sweep()
      return web.arrivals.length === 2
    })
    await untilEqual('status in the API', 'delivered', document.status)
    const [first, second] = web.arrivals
    expect([first!.body.toString(), second!.body.toString()]).toEqual(['lost', 'lost'])
    expect(second!.headers).toMatchObject({ 'x-relay-again': '1', 'x-relay-attempt': '2' })
    expect(second!.headers['webhook-id']).not.toBe(first!.headers['webhook-id'])
    expect((await document.deliveries())['files']).toMatchObject({ status: 'delivered', attempts: 1 })
    await untilEqual(
      'arrived',
      1,
      async () => (await call('GET', `/bulk-retries/${json.data.id}`)).json.data.attributes.delivered_deliveries,
    )
  })
})
