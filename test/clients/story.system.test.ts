import { execFile } from 'node:child_process'
import { cp, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import {
  createClient,
  pages,
  unwrap,
  verifyWebhook,
  waitForDocument,
  type Destination,
  type Document,
  type RelayClient,
} from '../../clients/typescript/src/index.ts'
import { createFolder } from '../support/folder.ts'
import { startHttpTarget } from '../support/http-target.ts'
import { startRelay } from '../support/relay.ts'
import { share } from '../support/share.ts'
import { startTemporalServer } from '../support/temporal-server.ts'

// One story in each language that has a client: destination, repository, connection, documents, wait, read, a retry that is refused, both
// kinds of pages, content, CSV, events, delete.

const env = share(await startTemporalServer())
const relay = share(await startRelay(env))
const { path: workDir } = share(await createFolder())

test('the story in TypeScript', async () => {
  await using target = await startHttpTarget()
  await relay.run(async ({ api }) => {
    const acme = await api.tenant('acme/typescript')
    const client = createClient({ baseUrl: api.baseUrl, workspace: 'acme/typescript', apiKey: acme.keys.admin })
    const secret = 'a secret of the story'
    const begun = (await unwrap(client.GET('/events', { params: { query: { after: 'latest' } } }))).meta.next_cursor

    const config = { url: `${target.origin}/documents`, signatures: 'standard_webhooks' } as const
    const webhook = { connector_type: 'webhook', config, credentials: { secret } } as const
    const destination: Destination = (await unwrap(client.POST('/destinations', { body: { name: 'TypeScript', ...webhook } }))).data
    const once = { params: { header: { 'Idempotency-Key': 'typescript' } }, body: { repo_id: 'TS', name: 'Invoices' } }
    const repository = (await unwrap(client.POST('/repositories', once))).data
    expect((await unwrap(client.POST('/repositories', once))).data.id).toBe(repository.id)
    const wiring = { name: 'TypeScript', repository_ids: [repository.id], destination_ids: [destination.id] }
    const connection = (await unwrap(client.POST('/connections', { body: wiring }))).data

    for (const docId of ['D1', 'D2', 'D3']) expect((await acme.sendCreate('TS', docId)).status).toBe(201)
    const listed: Document[][] = []
    for await (const { data } of pages(client, '/documents', { query: { repo_id: 'TS', per_page: 2 } })) listed.push(data)
    expect(listed.map(({ length }) => length)).toEqual([2, 1])
    const ids = listed.flat().map(({ id }) => id)
    for (const id of ids) expect((await waitForDocument(client, id, { seconds: 60 })).attributes.status).toBe('delivered')

    expect(target.arrivals).toHaveLength(3)
    for (const { headers, body } of target.arrivals) {
      expect((await verifyWebhook({ headers, body, secret })).id).toBe(headers['webhook-id'])
    }
    const [id] = ids as [string]
    const ofId = { params: { path: { id } } }
    expect(await unwrap(client.GET('/documents/{id}/content', { ...ofId, parseAs: 'text' }))).toBe('hello')
    const attempts = await unwrap(client.GET('/documents/{id}/attempts', ofId))
    expect(attempts.data.map(({ attributes }) => attributes.outcome)).toEqual(['delivered'])
    await expect(unwrap(client.POST('/documents/{id}/retry', ofId))).rejects.toMatchObject({ status: 409, code: 'nothing_to_retry' })

    const subjects: string[] = []
    const query = { event: 'destination.created', per_page: 1 } as const
    for await (const { data } of pages(client, '/audit-logs', { query }))
      subjects.push(...data.map(({ attributes }) => attributes.subject_id))
    expect(subjects).toEqual([destination.id])
    const ofDestination = { params: { query: { subject_id: destination.id } }, parseAs: 'text' } as const
    expect(await unwrap(client.GET('/audit-logs.csv', ofDestination))).toContain('Destination TypeScript (webhook) was created.')

    expect((await follow(client, begun, ids)).toSorted()).toEqual(ids.toSorted())
    const received: string[] = []
    for await (const { data } of pages(client, '/events', {
      query: { after: begun, types: 'document.received', per_page: 2, wait_seconds: 30 },
    })) {
      received.push(...data.map(({ attributes }) => String(attributes.data['document_id'])))
      if (received.length === ids.length) break
    }
    expect(received).toEqual(ids.toReversed())

    for (const path of ['/connections/{id}', '/destinations/{id}', '/repositories/{id}'] as const) {
      const resource = { '/connections/{id}': connection, '/destinations/{id}': destination, '/repositories/{id}': repository }[path]
      await unwrap(client.DELETE(path, { params: { path: { id: resource.id } } }))
      await expect(unwrap(client.GET(path, { params: { path: { id: resource.id } } }))).rejects.toMatchObject({ code: 'not_found' })
    }
  })
})

/** Follows the events until all of these documents were delivered. @returns those that were */
const follow = async (client: RelayClient, begun: string, ids: string[]): Promise<string[]> => {
  const delivered: string[] = []
  for (let after = begun; !ids.every((id) => delivered.includes(id));) {
    const query = { after, types: 'document.delivered', wait_seconds: 30 }
    const { data, meta } = await unwrap(client.GET('/events', { params: { query } }))
    if (data.length === 0) throw new Error('30 seconds have passed without an event')
    delivered.push(...data.map(({ attributes }) => String(attributes.data['document_id'])))
    after = meta.next_cursor
  }
  return delivered
}

const tools = process.env['TEST_API_TOOLS_DIR']
const python = (args: string[], variables: Record<string, string>) => {
  const options = {
    cwd: join(workDir, 'python'),
    env: {
      PATH: process.env['PATH'],
      HOME: workDir,
      PYTHONPATH: [join(workDir, 'python/src'), tools].join(':'),
      // The plugins of other tools take a second to load.
      PYTEST_DISABLE_PLUGIN_AUTOLOAD: '1',
      ...variables,
    },
    timeout: 110_000,
  }
  return new Promise<string>((resolve, reject) => {
    execFile('python3', args, options, (error, stdout, stderr) => {
      if (error) reject(new Error(`python3 ${args.join(' ')}: exit code ${error.code}\n${stdout}${stderr}`))
      else resolve(stdout)
    })
  })
}

test('the story in Python, with the other tests of its client and its example', async () => {
  if (!tools) {
    process.stdout.write('The story in Python is left out: it needs Python 3.11 or newer with pip.\n')
    return
  }
  const root = fileURLToPath(new URL('../../', import.meta.url))
  const client = join(root, 'clients/python')
  const example = await readFile(join(client, 'example.py'), 'utf8')
  expect(await readFile(join(client, 'README.md'), 'utf8')).toContain(`\`\`\`python\n${example}\`\`\`\n`)
  await cp(client, join(workDir, 'python'), { recursive: true })
  await python(['generate.py', join(root, 'openapi.json')], {})
  await relay.run(async ({ api }) => {
    const { keys } = await api.tenant('acme/python')
    const variables = { RELAY_URL: api.baseUrl, RELAY_WORKSPACE: 'acme/python', RELAY_API_KEY: keys.admin }
    const output = await python(['-m', 'pytest', '-p', 'no:cacheprovider', '--color=no'], variables)
    expect(output).toMatch(/\d+ passed in/)
    expect(output).not.toMatch(/skipped|warning/)
    expect(await python(['example.py'], variables)).toBe('0 failed documents\n404 not_found There is no such resource in this workspace.\n')
  })
})
