import { createHash, randomUUID } from 'node:crypto'
import { newId } from '../../base/ids.ts'
import type { DocumentFacts } from '../../content-server/answers.ts'
import { createContentServerClient, protocolVersion } from '../../content-server/client.ts'
import { ContentServerFailure, type Outcome } from '../../content-server/failure.ts'
import { measureDocument } from '../../content-server/measure.ts'
import type { CommandName } from '../../content-server/parameters.ts'
import { createRequestSigner, requestQuery } from '../../content-server/sign.ts'
import { hopsHeader } from '../../domain/headers.ts'
import {
  DeliveryError,
  type AttemptContext,
  type ByteSpan,
  type Connector,
  type DeliveryResult,
  type Payload,
  type StoredCopy,
  type Target,
} from '../connector.ts'
import { foundInPlace, storeOrFind, type Found } from '../shared/earlier-copy.ts'
import { withDeliveryErrors } from '../shared/errors.ts'
import { isPermanentStatus } from '../shared/final-statuses.ts'
import { during } from '../shared/operation.ts'
import { withPayloadStream } from '../shared/payload-stream.ts'
import { hostAndPath } from '../shared/place.ts'
import { cutBytes } from '../shared/stored-bytes.ts'
import { contentServerError, refusalOf, repositoryMissing } from './errors.ts'
import {
  contentServerConfig,
  contentServerCredentials,
  contentServerExample,
  type ContentServerConfig,
  type ContentServerCredentials,
} from './schema.ts'

type Client = ReturnType<typeof createContentServerClient>
type ContentServerTarget = Target<ContentServerConfig, ContentServerCredentials>

/**
 * Stores each document as a component of a document at another content server, under the ids of the source system: after a switch of the
 * source system to that server, its links still find it.
 */
export const contentServer: Connector<ContentServerConfig, ContentServerCredentials> = {
  kind: 'content-server',
  config: contentServerConfig,
  credentials: contentServerCredentials,
  // The private key stays here, but a server that gets signed URLs can repeat them at another one.
  boundKeys: ['url', 'repository', 'ca_certificate'],
  example: contentServerExample,
  deliver: (payload, target, context) => attempt(target, context, (client) => deliver(client, payload, target, context)),
  read: (copy, span, target, context, take) => attempt(target, context, (client) => read(client, copy, span, target, context, take)),
  placeKeys: ['repository', 'document_ids'],
  placeOf: ({ url, repository }) => ({ container: `${hostAndPath(url)}/${repository}`, prefix: '' }),
  probe: (target, context) => attempt(target, context, (client) => probe(client, target, context)),
}

const attempt = <Result>(
  { config, credentials }: ContentServerTarget,
  context: AttemptContext,
  run: (client: Client) => Promise<Result>,
): Promise<Result> => {
  const { auth_id: authId, certificate, private_key: privateKey } = credentials
  const isSigned = authId !== undefined && certificate !== undefined && privateKey !== undefined
  const start = () => {
    const signer = isSigned ? createRequestSigner({ authId, certificate, privateKey }) : undefined
    const server = { url: config.url, contRep: config.repository, signer, caCertificate: config.ca_certificate }
    return run(createContentServerClient(server, { ...context, headers: { [hopsHeader]: context.installationId } }))
  }
  return withDeliveryErrors(context, privateKey === undefined ? [] : [privateKey], start, (thrown) => contentServerError(thrown, isSigned))
}

const deliver = async (
  client: Client,
  payload: Payload,
  { config, credentials }: ContentServerTarget,
  { signal, onProgress }: AttemptContext,
): Promise<DeliveryResult> => {
  const { compId, sizeBytes } = payload
  const docId = config.document_ids === 'relay' ? payload.documentId : payload.docId
  const query = requestQuery('get', 'GET', { pVersion: protocolVersion, contRep: config.repository, docId, compId })
  const path = `${config.url}?${query}`
  const send = (command: 'create' | 'update') =>
    during(operationAt(config, command, docId, compId), () =>
      withPayloadStream(payload, { signal, onProgress }, async (body, abortSignal) => {
        const component = { compId, contentType: payload.contentType, sizeBytes, body }
        const sent = await client[command](docId, component, { signal: abortSignal })
        if (sent.ok) return true
        // The attempt of another component has created the document.
        if (command === 'create' && sent.failure.code === 'forbidden') return false
        if (command === 'create' && sent.failure.code === 'not_found') throw repositoryMissing(sent.failure, config.repository)
        throw sent.failure
      }),
    )
  const store = async (): Promise<DeliveryResult> => {
    const isNew = !(await during(operationAt(config, 'info', docId), () => exists(client, docId, signal))) && (await send('create'))
    if (!isNew) await send('update')
    await during(operationAt(config, 'info', docId, compId), () => expectSize(client, { docId, compId, sizeBytes }, signal))
    return { path, bytesSent: sizeBytes, answer: { status: isNew ? 201 : 200, doc_id: docId } }
  }
  return storeOrFind(store, {
    attempt: payload.attempt,
    refusalOf,
    look: async () => {
      const found = await during(operationAt(config, 'get', docId, compId), () => findComponent(client, { ...payload, docId }, signal))
      return found.state === 'ours'
        ? { ...found, stored: { path, bytesSent: 0, answer: { status: 200, doc_id: docId, body: foundInPlace } } }
        : found
    },
    toError: (thrown) => contentServerError(thrown, credentials.auth_id !== undefined),
  })
}

/** Reads bytes of a component. Reads from its beginning: servers differ in what they mean by an offset. */
const read = async (
  client: Client,
  { documentId, docId: id, compId }: StoredCopy,
  span: ByteSpan,
  { config }: ContentServerTarget,
  { signal }: AttemptContext,
  take: (bytes: AsyncIterable<Buffer>) => Promise<void>,
): Promise<boolean> => {
  const docId = config.document_ids === 'relay' ? documentId : id
  return during(operationAt(config, 'get', docId, compId), async () => {
    const content = await client.get(docId, { compId, signal })
    if (content.ok) {
      await take(cutBytes(content.value.body, span, 0))
      content.value.body.destroy()
      return true
    }
    if (content.failure.code !== 'not_found') throw content.failure
    // A server that is down, or no longer has the repository, also answers 404.
    const { repository } = valueOf(await client.serverInfo({ signal }))
    if (repository?.['contRepStatus'] !== 'running') throw repositoryMissing(content.failure, config.repository)
    return false
  })
}

/** Returns a command with its place, for the operator. */
const operationAt = ({ url, repository }: ContentServerConfig, command: CommandName, docId: string, compId?: string): string =>
  `${command} of ${[docId, ...(compId === undefined ? [] : [compId])].join('/')} in the repository ${repository} at ${url}`

/** Looks at the component under the ids of a document. The server keeps nothing of the relay with it, so the content decides. */
const findComponent = async (
  client: Client,
  { docId, compId, sizeBytes, sha256 }: Pick<Payload, 'docId' | 'compId' | 'sizeBytes' | 'sha256'>,
  signal: AbortSignal,
): Promise<Found<true>> => {
  const unseen = { state: 'unknown', needs: 'the content server does not permit it to read the component' } as const
  const described = await client.info(docId, { compId, signal })
  if (!described.ok) {
    if (described.failure.code === 'not_found') return { state: 'absent' }
    if (isPermanentStatus(described.failure.status ?? 0)) return unseen
    throw described.failure
  }
  const component = described.value.components.find((one) => one.compId === compId)
  if (!component) return { state: 'absent' }
  if (component.sizeBytes !== undefined && component.sizeBytes !== sizeBytes) return { state: 'other' }
  const content = await client.get(docId, { compId, signal })
  if (!content.ok) {
    if (isPermanentStatus(content.failure.status ?? 0)) return unseen
    throw content.failure
  }
  const hash = createHash('sha256')
  for await (const chunk of content.value.body as AsyncIterable<Buffer>) hash.update(chunk)
  return hash.digest('hex') === sha256 ? { state: 'ours', stored: true } : { state: 'other' }
}

const exists = async (client: Client, docId: string, signal: AbortSignal): Promise<boolean> => {
  const found = await client.info(docId, { signal })
  if (!found.ok && found.failure.code !== 'not_found') throw found.failure
  return found.ok
}

/** Returns a component of a document with its size, which is asked for if `info` has not told it. */
const measured = async (client: Client, facts: DocumentFacts, compId: string, signal: AbortSignal) => {
  const components = facts.components.filter((component) => component.compId === compId)
  const isUntold = components.some((component) => component.sizeBytes === undefined)
  const [stored] = isUntold ? valueOf(await measureDocument(client, { ...facts, components }, { signal })).components : components
  return stored
}

/** Asks the content server what it has stored. @throws DeliveryError if that has another length */
const expectSize = async (
  client: Client,
  { docId, compId, sizeBytes }: { docId: string; compId: string; sizeBytes: number },
  signal: AbortSignal,
): Promise<void> => {
  const described = await client.info(docId, { compId, signal })
  // Something in between may have answered the create.
  if (!described.ok && described.failure.code !== 'not_found') throw described.failure
  const stored = described.ok ? await measured(client, described.value, compId, signal) : undefined
  if (stored?.sizeBytes === sizeBytes) return
  const told = stored ? `${stored.sizeBytes} bytes` : 'no such component'
  throw new DeliveryError('content_altered', `the content server has accepted ${sizeBytes} bytes, but has ${told}`)
}

const probe = async (client: Client, { config }: ContentServerTarget, { signal }: AttemptContext): Promise<string> => {
  // The id has the form of those that a source system gives.
  const docId = config.document_ids === 'relay' ? newId() : randomUUID().replaceAll('-', '').toUpperCase()
  // As a delivery does: a server may answer something else about a document that it does not have.
  await during(operationAt(config, 'info', docId), () => exists(client, docId, signal))
  const body = Buffer.from('A test of a destination of Document Relay.')
  const component = { compId: 'data', contentType: 'text/plain', sizeBytes: body.length, body }
  await during(operationAt(config, 'create', docId, component.compId), async () => {
    const created = await client.create(docId, component, { signal })
    if (!created.ok) throw created.failure.code === 'not_found' ? repositoryMissing(created.failure, config.repository) : created.failure
  })
  const described = await during(operationAt(config, 'info', docId, component.compId), () =>
    expectSize(client, { docId, ...component }, signal),
  ).then(
    () => undefined,
    (thrown: unknown) => ({ thrown }),
  )
  const refusal = described === undefined ? await addComponent(client, config, docId, { ...component, compId: 'data1' }, signal) : undefined
  await during(operationAt(config, 'delete', docId), async () => {
    const deleted = await client.delete(docId, { signal })
    if (deleted.ok) return
    const { code, status, message } = deleted.failure
    throw new ContentServerFailure(code, `the document ${docId} of this test remains there, because it could not be deleted: ${message}`, {
      ...(status !== undefined && { status }),
      cause: deleted.failure.cause,
    })
  })
  if (described) throw described.thrown
  const created = `The content server created a document in the repository ${config.repository}, told its size,`
  if (refusal === undefined) return `${created} took a second component, and deleted it. No document remains.`
  return `${created} and deleted it. No document remains. It refused a second component: ${refusal}. So a document with several is delivered in part, and none is replaced.`
}

/** Adds a component to a document, as the delivery of a document with several does. @returns why the server refuses it */
const addComponent = (
  client: Client,
  config: ContentServerConfig,
  docId: string,
  component: Parameters<Client['update']>[1],
  signal: AbortSignal,
): Promise<string | undefined> =>
  during(operationAt(config, 'update', docId, component.compId), async () => {
    const added = await client.update(docId, component, { signal })
    if (added.ok) return undefined
    if (added.failure.status === undefined) throw added.failure
    return added.failure.message
  })

const valueOf = <T>(outcome: Outcome<T>): T => {
  if (!outcome.ok) throw outcome.failure
  return outcome.value
}
