import { createKey } from '../src/access/key-administration.ts'
import { apiKeyParts } from './support/api-key.ts'
import { tablesWith } from './support/canary.ts'
import { startHttpTarget } from './support/http-target.ts'
import { startInstallation } from './support/installation.ts'
import { routeTo } from './support/relay-process.ts'
import { share } from './support/share.ts'
import { createSourceSystem } from './support/source-system.ts'
import { until } from './support/until.ts'

const credential = 'canary-credential-4c1f'
const bytes = 'canary-bytes-90ab'
const secKey = 'canarySecKey7d2e'

const target = share(await startHttpTarget())
const { database, db, env, baseUrl, api, worker } = share(await startInstallation({ RELAY_LOG_LEVEL: 'trace' }))
const written: string[] = []
for (const { child } of [api, worker]) child.stderr!.on('data', (data: Buffer) => written.push(String(data)))
const log = () => written.join('')

/** Returns all texts and bytes of a value, such as the history of a workflow. */
const textOf = (value: unknown): string => {
  if (value instanceof Uint8Array) return Buffer.from(value).toString('latin1')
  if (typeof value !== 'object' || value === null) return String(value)
  return Object.values(value).map(textOf).join('\n')
}

test('credentials, API keys and secKeys are in no table, log line or workflow, and the bytes of a document in no log line or workflow', async () => {
  const routes = await routeTo(database, 'webhook', { url: `${target.origin}/inbox` }, { bearer_token: credential })
  const workspace = `acme/${routes.workspaceSlug}`
  await db('workspaces')
    .where({ id: routes.workspaceId })
    .update({ settings: JSON.stringify({ retry_initial_interval_seconds: 1 }) })
  const { key } = await createKey(db, { workspace, level: 'admin' })
  // The first answer shows the credential, as a careless target does.
  target.answerWith(({ headers }, response) => {
    response.writeHead(target.arrivals.length === 1 ? 500 : 200).end(`you sent ${headers.authorization}`)
  })

  const source = createSourceSystem(`${baseUrl}/receiver/${workspace}`)
  const query = `create&pVersion=0045&contRep=Z1&docId=D1&compId=data&accessMode=c&authId=CN%3DTST&expiration=20301231235959&secKey=${secKey}`
  expect((await source.call(query, { method: 'PUT', headers: { 'content-type': 'text/plain' }, body: bytes })).status).toBe(201)
  expect((await source.call(query.replace('contRep=Z1', 'contRep=Z9'), { method: 'PUT', body: bytes })).status).toBe(404)
  await source.close()
  const call = async (path: string, authorization: string) => {
    const answer = await fetch(`${baseUrl}/api/${workspace}${path}`, { headers: { authorization } })
    return (await answer.json()) as { data: { attributes: { status: string } }[] }
  }
  await until(
    'the document is delivered',
    async () => (await call('/documents', `Bearer ${key}`)).data[0]?.attributes.status === 'delivered',
  )
  await call('/documents', `Bearer ${key}x`)
  // The target got both, so they were in use.
  expect(target.arrivals.map(({ headers, body }) => [headers.authorization, String(body)])).toEqual(
    Array.from({ length: 2 }, () => [`Bearer ${credential}`, bytes]),
  )

  const listWorkflows = async () => {
    const found: { workflowId: string; runId: string }[] = []
    for await (const { workflowId, runId } of env.client.workflow.list()) found.push({ workflowId, runId })
    return found
  }
  // The list lags behind the workflows.
  const listed = await until('the document and its delivery are listed', listWorkflows, (all) => {
    const ids = all.map(({ workflowId }) => workflowId)
    return ids.some((id) => ids.includes(`${id}/${routes.destinationId}`))
  })
  let histories = ''
  for (const { workflowId, runId } of listed) {
    histories += textOf(await env.client.workflow.getHandle(workflowId, runId).fetchHistory())
  }
  expect(histories).toContain(routes.destinationId)
  await until('the refusal is logged', () => log().includes('request refused'))
  const keySecret = apiKeyParts(key).secret
  for (const secret of [credential, keySecret, secKey]) {
    expect([secret, await tablesWith(db, secret)]).toEqual([secret, []])
    expect({ secret, isInLog: log().includes(secret), isInWorkflow: histories.includes(secret) }).toEqual({
      secret,
      isInLog: false,
      isInWorkflow: false,
    })
  }
  expect({ isInLog: log().includes(bytes), isInWorkflow: histories.includes(bytes) }).toEqual({ isInLog: false, isInWorkflow: false })
  expect(await tablesWith(db, bytes)).not.toEqual([])
})
