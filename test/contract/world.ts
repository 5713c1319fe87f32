import { randomUUID } from 'node:crypto'
import { newId } from '../../src/base/ids.ts'
import { exception, result, startRfcSystem } from '../support/rfc-system.ts'
import { createSigner } from '../support/signer.ts'
import { until } from '../support/until.ts'
import { startRelay, type Answer, type Relay, type Sent, type Workspace } from './relay.ts'

type Json = Answer['json']

/** A statement, which begins with its section, and a check that proves it. */
export type Row = readonly [statement: string, check: (world: World) => Promise<void>]

/** Returns a row for each field of a table and a row that there are no other fields. `read` fetches the resource. */
export const fields = (table: string, expected: Record<string, unknown>, read: (world: World) => Promise<Json>): Row[] => [
  ...Object.entries(expected).map(([name, value]): Row => [
    `${table}: ${name}`,
    async (world) => expect((await read(world))[name]).toEqual(value),
  ]),
  [
    `${table}: no other fields`,
    async (world) => expect(Object.keys(await read(world)).toSorted()).toEqual(Object.keys(expected).toSorted()),
  ],
]

export const text = expect.any(String)
export const time = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
export const ulid = expect.stringMatching(/^[0-7][0-9A-HJKMNP-TV-Z]{25}$/)
export const count = expect.any(Number)

type TargetPath = 'accepting' | 'down' | 'refusing' | 'switchable'

const randomWord = () => randomUUID().slice(0, 8).toUpperCase()
const isInProgress = ({ status }: Json) => status === 'pending' || status === 'retrying'

/** Returns the helpers that checks use in a workspace. */
const helpersOf = (relay: Relay, workspace: Workspace) => {
  const { call, send } = workspace
  /** Creates a resource. @returns its id */
  const createResource = async (path: string, body: object): Promise<string> => {
    const { status, json, text: answer } = await call('POST', path, body)
    if (status !== 201) throw new Error(answer)
    return json.data.id as string
  }
  const webhook = (path: TargetPath = 'accepting', name = `To ${path}`) => ({
    name,
    connector_type: 'webhook',
    config: { url: `${relay.target.origin}/${path}` },
    credentials: {},
  })
  const destination = (path: TargetPath = 'accepting', name?: string) => createResource('/destinations', webhook(path, name))
  const repository = async (repoId = `R${randomWord()}`, name = `Repository ${repoId}`) => ({
    repoId,
    id: await createResource('/repositories', { repo_id: repoId, name }),
  })
  const connection = (repositoryIds: string[], destinationIds: string[], more: object = {}) =>
    createResource('/connections', { name: 'A', repository_ids: repositoryIds, destination_ids: destinationIds, ...more })

  /** Creates a repository and connects it to one destination for each target path. */
  const wire = async (paths: TargetPath[], more: object = {}) => {
    const { repoId, id: repositoryId } = await repository()
    const destinations: string[] = []
    for (const path of paths) destinations.push(await destination(path))
    const connectionId = paths.length > 0 ? await connection([repositoryId], destinations, more) : ''
    return { repoId, repositoryId, destinations, connectionId }
  }

  const sendCreate = (repoId: string, docId: string, body: string | Buffer = 'hello', contentType = 'application/pdf'): Promise<Sent> =>
    send('PUT', `create&pVersion=0045&contRep=${repoId}&docId=${docId}&compId=data`, body, { 'content-type': contentType })

  /** Sends a document and waits until it has a status. @returns its id */
  const sendDocument = async (repoId: string, status: string, docId = newId()): Promise<string> => {
    const sent = await sendCreate(repoId, docId)
    if (sent.status !== 201) throw new Error(`${sent.status} ${sent.headers.get('x-errordescription')}`)
    const listed = await call('GET', `/documents?repo_id=${repoId}`)
    const { id } = listed.json.data.find(({ attributes }: Json) => attributes.doc_id === docId)
    await waitForStatus(id, status)
    return id
  }
  const waitForStatus = (id: string, status: string) =>
    until(
      `a document with the status ${status}`,
      async () => (await call('GET', `/documents/${id}`)).json.data.attributes,
      // A document is failed as soon as one delivery has failed. Wait for its other deliveries, too.
      ({ status: current, deliveries }: Json) => current === status && (status !== 'failed' || !deliveries.some(isInProgress)),
    )

  const attributesOf = async (path: string): Promise<Json> => (await call('GET', path)).json.data.attributes
  /** Waits until a request is captured. @returns its attributes */
  const capturedRequest = async ({ requestId }: { requestId: string }): Promise<Json> =>
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

  return {
    ...workspace,
    createResource,
    webhook,
    destination,
    repository,
    connection,
    wire,
    sendCreate,
    sendDocument,
    waitForStatus,
    attributesOf,
    capturedRequest,
    statusOf,
    idsOf,
    eventsOf,
  }
}

/** Starts a relay with two workspaces. The first contains one specimen of every resource. */
export const startWorld = async () => {
  const relay = await startRelay()
  const acme = helpersOf(relay, await relay.workspace('acme/invoices'))
  const other = helpersOf(relay, await relay.workspace('other/invoices'))
  const signer = await createSigner('RSA 2048')
  const erp = await startRfcSystem({
    RFC_PING: (parameters) => result('RFC_PING', parameters, '<ECHOTEXT>pong</ECHOTEXT>'),
    Z_REFUSED: () => exception('Z_REFUSED', 'NO_AUTHORITY', 'You are not allowed'),
  })
  await acme.call('PATCH', '/settings', {
    rfc: { url: erp.url, client: '100', allowed_functions: ['RFC_PING', 'Z_REFUSED', 'Z_UNKNOWN'], credentials: erp.logon },
  })

  const wiring = await acme.wire(['accepting'])
  const certificateId = await acme.createResource(`/repositories/${wiring.repositoryId}/certificates`, {
    auth_id: 'CN=TST',
    certificate: signer.pem,
    status: 'active',
  })
  const documentId = await acme.sendDocument(wiring.repoId, 'delivered', 'SPECIMEN')
  const xml = await acme.sendCreate(wiring.repoId, 'CAPTURED', '<invoice/>', 'text/xml')
  const call = await acme.bridge('RFC_PING', { imports: { REQUTEXT: 'ping' } })
  const specimen = {
    ...wiring,
    destinationId: wiring.destinations[0]!,
    certificateId,
    documentId,
    requestId: xml.requestId,
    bridgeRequestId: call.headers.get('x-relay-request-id')!,
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
