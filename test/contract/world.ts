import { randomUUID } from 'node:crypto'
import { newId } from '../../src/ids.ts'
import { exception, result, startRfcSystem } from '../support/rfc-system.ts'
import { createSigner } from '../support/signer.ts'
import { until } from '../support/until.ts'
import { startRelay, type Answer, type Relay, type Sent, type Workspace } from './relay.ts'

type Json = Answer['json']

/** A statement, with the section it stands in first, and what shows it. */
export type Row = readonly [statement: string, check: (world: World) => Promise<void>]

/** A row for each field of a table: the field is as the table says in what `read` answers, and so is the set of them. */
export const fields = (table: string, expected: Record<string, unknown>, read: (world: World) => Promise<Json>): Row[] => [
  ...Object.entries(expected).map(([name, value]): Row => [
    `${table}: ${name}`,
    async (world) => expect((await read(world))[name]).toEqual(value),
  ]),
  [`${table}: nothing else`, async (world) => expect(Object.keys(await read(world)).toSorted()).toEqual(Object.keys(expected).toSorted())],
]

export const text = expect.any(String)
export const time = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
export const ulid = expect.stringMatching(/^[0-7][0-9A-HJKMNP-TV-Z]{25}$/)
export const count = expect.any(Number)

type TargetPath = 'taken' | 'down' | 'refused' | 'mended'

const wordOf = () => randomUUID().slice(0, 8).toUpperCase()
const isOnItsWay = ({ status }: Json) => status === 'pending' || status === 'retrying'

/** What rows need again and again, for one workspace. */
const toolsOf = (relay: Relay, workspace: Workspace) => {
  const { call, send } = workspace
  /** The id of a new resource. */
  const made = async (path: string, body: object): Promise<string> => {
    const { status, json, text: said } = await call('POST', path, body)
    if (status !== 201) throw new Error(said)
    return json.data.id as string
  }
  const webhook = (path: TargetPath = 'taken', name = `To ${path}`) => ({
    name,
    connector_type: 'webhook',
    config: { url: `${relay.target.origin}/${path}` },
    credentials: {},
  })
  const destination = (path: TargetPath = 'taken', name?: string) => made('/destinations', webhook(path, name))
  const repository = async (repoId = `R${wordOf()}`, name = `Repository ${repoId}`) => ({
    repoId,
    id: await made('/repositories', { repo_id: repoId, name }),
  })
  const connection = (repositoryIds: string[], destinationIds: string[], more: object = {}) =>
    made('/connections', { name: 'A', repository_ids: repositoryIds, destination_ids: destinationIds, ...more })

  /** A repository wired to a destination of each of these kinds by one connection. */
  const wire = async (paths: TargetPath[], more: object = {}) => {
    const { repoId, id: repositoryId } = await repository()
    const destinations: string[] = []
    for (const path of paths) destinations.push(await destination(path))
    const connectionId = paths.length > 0 ? await connection([repositoryId], destinations, more) : ''
    return { repoId, repositoryId, destinations, connectionId }
  }

  const create = (repoId: string, docId: string, body: string | Buffer = 'hello', contentType = 'application/pdf'): Promise<Sent> =>
    send('PUT', `create&pVersion=0045&contRep=${repoId}&docId=${docId}&compId=data`, body, { 'content-type': contentType })

  /** Sends a document, and waits until it has this status. @returns its id */
  const document = async (repoId: string, status: string, docId = newId()): Promise<string> => {
    const sent = await create(repoId, docId)
    if (sent.status !== 201) throw new Error(`${sent.status} ${sent.headers.get('x-errordescription')}`)
    const listed = await call('GET', `/documents?repo_id=${repoId}`)
    const { id } = listed.json.data.find(({ attributes }: Json) => attributes.doc_id === docId)
    await settled(id, status)
    return id
  }
  const settled = (id: string, status: string) =>
    until(
      `the status ${status} of a document`,
      async () => (await call('GET', `/documents/${id}`)).json.data.attributes,
      // one failure makes a document failed, while others may still be on their way
      ({ status: present, deliveries }: Json) => present === status && (status !== 'failed' || !deliveries.some(isOnItsWay)),
    )

  const attributesOf = async (path: string): Promise<Json> => (await call('GET', path)).json.data.attributes
  /** The one captured of an answer. */
  const captured = async ({ requestId }: { requestId: string }): Promise<Json> =>
    (
      await until(
        'the captured request',
        () => call('GET', `/requests/${requestId}`),
        ({ status }) => status === 200,
      )
    ).json.data.attributes
  const statusOf = async (method: string, path: string, body?: unknown, key?: string): Promise<number> =>
    (await call(method, path, body, key === undefined ? {} : { key })).status
  const idsOf = async (path: string): Promise<string[]> => (await call('GET', path)).json.data.map(({ id }: Json) => id)
  const eventsOf = async (subjectId: string): Promise<Json[]> =>
    (await call('GET', `/audit-logs?subject_id=${subjectId}&per_page=100`)).json.data

  const tools = { made, webhook, destination, repository, connection, wire, create, document, settled, attributesOf, captured, statusOf }
  return { ...workspace, ...tools, idsOf, eventsOf }
}

/** A running relay with two workspaces, and in the first one a specimen of everything that can be looked at. */
export const startWorld = async () => {
  const relay = await startRelay()
  const acme = toolsOf(relay, await relay.workspace('acme/invoices'))
  const other = toolsOf(relay, await relay.workspace('other/invoices'))
  const signer = await createSigner('RSA 2048')
  const erp = await startRfcSystem({
    RFC_PING: (called) => result('RFC_PING', called, '<ECHOTEXT>pong</ECHOTEXT>'),
    Z_REFUSED: () => exception('Z_REFUSED', 'NO_AUTHORITY', 'You are not allowed'),
  })
  await acme.call('PATCH', '/settings', {
    rfc: { url: erp.url, client: '100', allowed_functions: ['RFC_PING', 'Z_REFUSED', 'Z_UNKNOWN'], credentials: erp.logon },
  })

  const wired = await acme.wire(['taken'])
  const certificateId = await acme.made(`/repositories/${wired.repositoryId}/certificates`, {
    auth_id: 'CN=TST',
    certificate: signer.pem,
    status: 'active',
  })
  const documentId = await acme.document(wired.repoId, 'delivered', 'SPECIMEN')
  const xml = await acme.create(wired.repoId, 'CAPTURED', '<invoice/>', 'text/xml')
  const called = await acme.bridge('RFC_PING', { imports: { REQUTEXT: 'ping' } })
  const specimen = {
    ...wired,
    destinationId: wired.destinations[0]!,
    certificateId,
    documentId,
    requestId: xml.requestId,
    bridgeRequestId: called.headers.get('x-relay-request-id')!,
  }
  return {
    ...relay,
    acme,
    other,
    signer,
    erp,
    specimen,
    stop: async () => {
      await signer.remove()
      await erp.stop()
      await relay.stop()
    },
  }
}

export type World = Awaited<ReturnType<typeof startWorld>>
export type { Json }
