import { newId } from '../../src/base/ids.ts'
import type { Json, WorkspaceClient } from '../support/client.ts'
import { startHttpTarget, type HttpTarget } from '../support/http-target.ts'
import { startInstallation } from '../support/installation.ts'
import { exception, result, startRfcSystem } from '../support/rfc-system.ts'
import { createSigner } from '../support/signer.ts'

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

/** Paths of the target: `accepting` answers 200, `down` 503, `refusing` 400, `switchable` as set by `switchTo`. */
type TargetPath = 'accepting' | 'down' | 'refusing' | 'switchable'

/** Returns the helpers that checks use in a workspace. */
const helpersOf = (target: HttpTarget, workspace: WorkspaceClient) => {
  const { call } = workspace
  const webhook = (path: TargetPath = 'accepting', name = `To ${path}`) => workspace.webhook(`${target.origin}/${path}`, name)
  const repository = async (repoId = `R${newId().slice(-8)}`, name = `Repository ${repoId}`) => ({
    repoId,
    id: await workspace.create('/repositories', { repo_id: repoId, name }),
  })
  return {
    ...workspace,
    webhook,
    repository,
    destination: (path?: TargetPath, name?: string) => workspace.create('/destinations', webhook(path, name)),
    /** Creates a repository and connects it to one destination for each target path. */
    wire: (paths: TargetPath[], connection: object = {}) =>
      workspace.wire(
        paths.map((path) => webhook(path)),
        { connection: { name: 'A', ...connection } },
      ),
    /** Waits until a request is captured. @returns its attributes */
    capturedRequest: ({ requestId }: { requestId: string }): Promise<Json> => workspace.untilCaptured(requestId),
    statusOf: async (method: string, path: string, body?: unknown, key?: string): Promise<number> =>
      (await call(method, path, body, { key })).status,
    idsOf: async (path: string): Promise<string[]> => (await call('GET', path)).json.data.map(({ id }: Json) => id),
    eventsOf: async (subjectId: string): Promise<Json[]> =>
      (await call('GET', `/audit-logs?subject_id=${subjectId}&per_page=100`)).json.data,
  }
}

/** Starts a relay with two workspaces. The first contains one specimen of every resource. */
export const startWorld = async () => {
  const [relay, target] = await Promise.all([
    startInstallation({ RELAY_WRONG_KEYS_PER_MINUTE: '1000', CAPTURE_BODY_MAX_BYTES: '100000' }),
    startHttpTarget(),
  ])
  let switchable = 400
  target.answerWith(({ url }, response) => {
    const statuses: Record<string, number> = { '/down': 503, '/refusing': 400, '/switchable': switchable }
    response.writeHead(statuses[url] ?? 200).end('test response')
  })
  const acme = helpersOf(target, await relay.tenant('acme/invoices'))
  const other = helpersOf(target, await relay.tenant('other/invoices'))
  const signer = await createSigner('RSA 2048')
  const erp = await startRfcSystem({
    RFC_PING: (parameters) => result('RFC_PING', parameters, '<ECHOTEXT>pong</ECHOTEXT>'),
    Z_REFUSED: () => exception('Z_REFUSED', 'NO_AUTHORITY', 'You are not allowed'),
  })
  await acme.call('PATCH', '/settings', {
    rfc: { url: erp.url, client: '100', allowed_functions: ['RFC_PING', 'Z_REFUSED', 'Z_UNKNOWN'], credentials: erp.logon },
  })

  const wiring = await acme.wire(['accepting'])
  const certificateId = await acme.create(`/repositories/${wiring.repositoryId}/certificates`, {
    auth_id: 'CN=TST',
    certificate: signer.pem,
    status: 'active',
  })
  const documentId = await acme.sendDocument(wiring.repoId, 'delivered', 'SPECIMEN')
  const xml = await acme.sendCreate(wiring.repoId, 'CAPTURED', '<invoice/>', 'text/xml')
  const call = await acme.bridge('RFC_PING', { imports: { REQUTEXT: 'ping' } })
  const specimen = {
    ...wiring,
    certificateId,
    documentId,
    requestId: xml.requestId,
    bridgeRequestId: call.headers.get('x-relay-request-id')!,
  }
  return {
    ...relay,
    target,
    /** Sets the status with which the target path `switchable` answers. */
    switchTo: (status: number) => {
      switchable = status
    },
    /** Returns the documents of a repository that have arrived at the target. */
    arrivalsOf: (repoId: string) => target.arrivals.filter(({ headers }) => headers['x-relay-repo-id'] === repoId),
    acme,
    other,
    signer,
    erp,
    specimen,
    [Symbol.asyncDispose]: async () => {
      await signer.remove()
      await erp.stop()
      await relay[Symbol.asyncDispose]()
      await target.stop()
    },
  }
}

export type World = Awaited<ReturnType<typeof startWorld>>
export type { Json }
