import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { Client } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import { findFreePort } from '../../../src/programs/ports.ts'
import { insertDocument } from '../../api/insert-document.ts'
import { wire } from '../../api/objstore.ts'
import type { Json } from '../../support/client.ts'
import { startScene } from '../../support/scene.ts'
import { share } from '../../support/share.ts'
import { until } from '../../support/until.ts'

const main = fileURLToPath(new URL('../../../src/main.ts', import.meta.url))
const { database, api, acme } = share(await startScene())

const wired = await wire(acme, 'M1')

/** Creates a document whose delivery has failed. @returns its id */
const failed = async (docId: string) => {
  const { repositoryId, ...ids } = wired
  const row = { workspaceId: acme.id, repositoryId, repoId: 'M1', docId, status: 'failed' as const }
  const id = await insertDocument(database.db, { ...row, deliveries: [{ ...ids, status: 'failed' }] })
  const error = { last_error: 'x'.repeat(5_000), last_error_code: 'credentials_refused', ended_by: 'permanent_error' }
  await database.db('deliveries').where({ document_id: id }).update(error)
  return id
}

const environment = (key: string) => ({
  PATH: process.env['PATH'] ?? '',
  NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'] ?? '',
  RELAY_API_KEY: key,
})

interface Result {
  isError: boolean
  answer: Json
}

const page = await readFile(new URL('../../../docs/mcp.md', import.meta.url), 'utf8')
const { mcpServers } = JSON.parse(/```json\n([^]*?)```/.exec(page)![1]!)
const documented: { command: string; args: string[]; env: object } = mcpServers['document-relay']

/** Starts `relay mcp` as a client does that is configured as docs/mcp.md says. */
const connect = async (key: string, args: string[] = [], url = api.baseUrl, mode: 'legacy' | { pin: string } = 'legacy') => {
  expect(documented).toMatchObject({ command: 'relay', env: { RELAY_API_KEY: 'relay_...' } })
  const values: Record<string, string> = { 'https://relay.example': url, 'acme/invoices': 'acme/prod' }
  const command = [main, ...documented.args.map((each) => values[each] ?? each), ...args]
  const client = new Client({ name: 'test', version: '1' }, { versionNegotiation: { mode } })
  await client.connect(new StdioClientTransport({ command: process.execPath, args: command, env: environment(key) }))
  return {
    list: async () => (await client.listTools()).tools,
    call: async (name: string, input: Record<string, unknown> = {}): Promise<Result> => {
      const { isError = false, structuredContent, content } = await client.callTool({ name, arguments: input })
      const answer = structuredContent as Json
      if (answer !== undefined) expect(content).toEqual([{ type: 'text', text: JSON.stringify(answer) }])
      return { isError, answer: answer ?? (content as Json)[0].text }
    },
    [Symbol.asyncDispose]: () => client.close(),
  }
}

/** Starts a server that answers everything the same. */
const answering = async (status: number, headers: Record<string, string>, body: string) => {
  const asked: string[] = []
  const server = createServer((request, response) => {
    asked.push(request.url!)
    response.writeHead(status, headers).end(body)
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    asked,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}

const changing = ['retry_document', 'attempt_now', 'acknowledge_document', 'retry_failures', 'replay_discarded']

test('a viewer finds a failed document and reads why it failed, with tools that only read', async () => {
  const id = await failed('READ1')
  await using mcp = await connect(acme.keys.viewer)
  const listed = await mcp.list()
  expect(listed.map(({ annotations }) => annotations?.readOnlyHint)).toEqual(listed.map(() => true))
  expect(listed.map(({ name }) => name)).toEqual([
    'find_documents',
    'get_document',
    'list_attempts',
    'list_failures',
    'list_destinations',
    'get_destination',
    'list_discarded',
    'follow_events',
    'statistics',
  ])

  const { answer: failures } = await mcp.call('list_failures')
  expect(failures.data).toMatchObject([{ attributes: { destination_id: wired.destinationId, error_code: 'credentials_refused' } }])
  const { answer: found } = await mcp.call('find_documents', { q: 'read1', error_code: 'credentials_refused' })
  expect(found.data.map((document: Json) => document.id)).toEqual([id])
  const { answer } = await mcp.call('get_document', { id })
  expect(answer.data.attributes.deliveries).toEqual([
    expect.objectContaining({
      status: 'failed',
      last_error: { code: 'credentials_refused', message: `${'x'.repeat(1_000)} ... (5000 characters)` },
      end_explained: expect.stringContaining('It is not retried automatically'),
      remedy: expect.stringContaining('Bucket of M1'),
    }),
  ])
  const { answer: destination } = await mcp.call('get_destination', { id: wired.destinationId })
  expect(destination.data.attributes).toMatchObject({ circuit: 'closed', connections: [{ source_repo_id: 'M1' }] })
  expect(JSON.stringify(destination)).not.toContain('canary-5f1c')

  for (const { name } of listed.filter(({ inputSchema }) => !inputSchema.required?.includes('id'))) {
    expect({ name, ...(await mcp.call(name)) }).toMatchObject({ name, isError: false, answer: { data: expect.anything() } })
  }
  expect(await mcp.call('list_attempts', { id })).toMatchObject({ isError: false, answer: { data: [] } })
})

test('a client of the protocol of 2026 is served, too', async () => {
  await using mcp = await connect(acme.keys.viewer, [], api.baseUrl, { pin: '2026-07-28' })
  expect((await mcp.list()).map(({ name }) => name)).toContain('statistics')
  expect(await mcp.call('statistics')).toMatchObject({ isError: false, answer: { data: { type: 'stats' } } })
})

test('an agent follows events', async () => {
  await using mcp = await connect(acme.keys.viewer)
  const { answer: now } = await mcp.call('follow_events', { after: 'latest' })
  const id = await failed('EVENT1')
  await acme.call('POST', `/documents/${id}/acknowledge`)
  const { answer } = await mcp.call('follow_events', { after: now.meta.next_cursor, types: 'document.acknowledged', wait_seconds: 30 })
  expect(answer.data).toMatchObject([{ attributes: { event: 'document.acknowledged', data: { document_id: id } } }])
})

test('the relay refuses a change to a viewer, and the refusal is an error of the tool', async () => {
  const id = await failed('VIEW1')
  await using mcp = await connect(acme.keys.viewer, ['--allow-changes'])
  const listed = await mcp.list()
  expect(listed.filter(({ annotations }) => annotations?.readOnlyHint === false).map(({ name }) => name)).toEqual(changing)
  expect(await mcp.call('retry_document', { id })).toEqual({
    isError: true,
    answer: {
      error: expect.objectContaining({
        code: 'forbidden',
        status: 403,
        message: 'This operation requires an API key of level member. This key has level viewer.',
        doc_url: expect.stringMatching(/#forbidden$/),
      }),
    },
  })
})

test('a member retries a document, and counts before retrying many', async () => {
  const [id, other] = [await failed('RETRY1'), await failed('RETRY2')]
  await using mcp = await connect(acme.keys.member, ['--allow-changes'])
  const retried = await mcp.call('retry_document', { id })
  expect(retried).toMatchObject({ isError: false, answer: { data: { attributes: { status: 'retrying' } } } })
  expect(await mcp.call('retry_document', { id })).toMatchObject({ isError: true, answer: { error: { code: 'nothing_to_retry' } } })

  const counted = await mcp.call('retry_failures', { destination_id: wired.destinationId })
  expect(counted.answer.data.attributes).toMatchObject({ status: 'dry_run', matched_documents: expect.any(Number) })
  expect((await mcp.call('get_document', { id: other })).answer.data.attributes.status).toBe('failed')
  expect(await mcp.call('acknowledge_document', { id: other })).toMatchObject({ isError: false })
  expect(await mcp.call('replay_discarded', { repo_id: 'M1' })).toMatchObject({ isError: true, answer: { error: { code: 'forbidden' } } })
})

test('input that no tool takes is refused before a request is sent', async () => {
  await using mcp = await connect(acme.keys.viewer)
  for (const [name, input] of [
    ['get_document', { id: '../settings' }],
    ['find_documents', { repository: 'M1' }],
    ['find_documents', { per_page: 1_000 }],
  ] as const) {
    expect(await mcp.call(name, input)).toEqual({ isError: true, answer: expect.stringContaining('Input validation error') })
  }
})

describe('an error of a tool says', () => {
  test('that the key is not valid', async () => {
    await using mcp = await connect('relay_wrong_key')
    expect(await mcp.call('list_failures')).toMatchObject({ isError: true, answer: { error: { code: 'unauthorized', status: 401 } } })
  })

  test('that the relay cannot be reached', async () => {
    const url = `http://127.0.0.1:${await findFreePort()}`
    await using mcp = await connect(acme.keys.viewer, [], url)
    const message = `The relay at ${url} does not answer (ECONNREFUSED). Check that it runs, and the address of the relay.`
    expect(await mcp.call('list_failures')).toEqual({ isError: true, answer: { error: { code: 'unreachable', message } } })
  })

  test('when to ask again', async () => {
    const error = { code: 'rate_limited', message: 'Too many requests.' }
    await using server = await answering(429, { 'retry-after': '7' }, JSON.stringify({ error }))
    await using mcp = await connect(acme.keys.viewer, [], server.url)
    const answer = { error: { ...error, status: 429, retry_after_seconds: 7 } }
    expect(await mcp.call('list_failures')).toEqual({ isError: true, answer })
  })

  test('that something else has answered, which gets no key for another address', async () => {
    await using server = await answering(302, { location: '/elsewhere' }, '<p>Moved</p>')
    await using mcp = await connect(acme.keys.viewer, [], `${server.url}/relay/`)
    expect(await mcp.call('list_failures')).toMatchObject({ isError: true, answer: { error: { code: 'unexpected_answer' } } })
    expect(server.asked).toEqual(['/relay/api/acme/prod/failures?status=failed&page=1&per_page=20'])
  })
})

describe('the process', () => {
  const start = (args: string[], variables: Record<string, string> = {}) => {
    const env = { ...environment(acme.keys.viewer), ...variables }
    const child = spawn(process.execPath, [main, 'mcp', ...args], { env, stdio: 'pipe' })
    const ended = Promise.all([once(child, 'exit'), text(child.stdout), text(child.stderr)])
    return { child, ended: ended.then(([[status], stdout, stderr]) => ({ status: status as number, stdout, stderr })) }
  }

  test('ends when its input ends, and prints nothing of its own', async () => {
    const { child, ended } = start([], { RELAY_URL: api.baseUrl, RELAY_WORKSPACE: 'acme/prod' })
    child.stdin.end('this is not JSON-RPC\n')
    expect(await ended).toMatchObject({ status: 0, stdout: '' })
  })

  test('ends when its input ends, although a call waits for events', async () => {
    const { child, ended } = start([], { RELAY_URL: api.baseUrl, RELAY_WORKSPACE: 'acme/prod' })
    const send = (message: object) => child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`)
    const clientInfo = { name: 'test', version: '1' }
    send({ id: 1, method: 'initialize', params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo } })
    send({ method: 'notifications/initialized' })
    send({ id: 2, method: 'tools/call', params: { name: 'follow_events', arguments: { after: 'latest', wait_seconds: 30 } } })
    await until(
      'the call waits',
      async () => api.countWaiting(),
      (count) => count === 1,
    )
    child.stdin.end()
    const { status, stdout } = await ended
    expect({
      status,
      answered: stdout
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line).id),
    }).toEqual({ status: 0, answered: [1] })
    await until(
      'nothing waits',
      async () => api.countWaiting(),
      (count) => count === 0,
    )
  })

  test.each<[string, string[], Record<string, string>]>([
    ['The address of the relay is missing', [], {}],
    ['The workspace is missing', ['--url', 'https://relay.example'], {}],
    ['The workspace has the form user/workspace', ['--url', 'https://relay.example', '--workspace', 'acme/..'], {}],
    ['not an http or https URL', ['--url', 'relay.example', '--workspace', 'acme/prod'], {}],
    ['must have no user', ['--url', 'https://me:secret@relay.example', '--workspace', 'acme/prod'], {}],
    ['The API key is missing', ['--url', 'https://relay.example', '--workspace', 'acme/prod'], { RELAY_API_KEY: '' }],
    ['RELAY_API_KEY is not an API key', ['--url', 'https://relay.example', '--workspace', 'acme/prod'], { RELAY_API_KEY: 'sec\nret' }],
  ])('says what is wrong: %s', async (message, args, variables) => {
    const { child, ended } = start(args, variables)
    child.stdin.end()
    const { status, stdout, stderr } = await ended
    expect({ status, stdout, stderr }).toEqual({ status: 1, stdout: '', stderr: expect.stringContaining(message) })
    expect(stderr).not.toMatch(/sec\n?ret/)
  })
})

test('refusals that repeat half an emoji of the agent are JSON that a strict client can read', async () => {
  await using client = await connect(acme.keys.viewer)
  const { isError, answer } = await client.call('find_documents', { '\ud83d': 1 })
  expect(isError).toBe(true)
  expect(answer).toMatch(/Unrecognized key: "\ufffd"/)
  await expect(client.call('\ud83d')).rejects.toThrow('Tool \ufffd not found')
})
