import { randomUUID } from 'node:crypto'
import { createContentServerClient, protocolVersion } from '../../content-server/client.ts'
import { ContentServerFailure, type Outcome } from '../../content-server/failure.ts'
import { measureDocument } from '../../content-server/measure.ts'
import { createRequestSigner, requestQuery } from '../../content-server/sign.ts'
import { hopsHeader } from '../../domain/headers.ts'
import { DeliveryError, type AttemptContext, type Connector, type DeliveryResult, type Payload, type Target } from '../connector.ts'
import { withDeliveryErrors } from '../shared/errors.ts'
import { contentTypeHeader } from '../shared/http.ts'
import { withPayloadStream } from '../shared/payload-stream.ts'
import { contentServerError, repositoryMissing } from './errors.ts'
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
  boundKeys: ['url', 'ca_certificate'],
  example: contentServerExample,
  deliver: (payload, target, context) => attempt(target, context, (client) => deliver(client, payload, target, context)),
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
  { config }: ContentServerTarget,
  { signal, onProgress }: AttemptContext,
): Promise<DeliveryResult> => {
  const { compId, sizeBytes } = payload
  const docId = config.document_ids === 'relay' ? payload.documentId : payload.docId
  const send = (command: 'create' | 'update') =>
    withPayloadStream(payload, { signal, onProgress }, async (body, abortSignal) => {
      const component = { compId, contentType: contentTypeHeader(payload.contentType), sizeBytes, body }
      const sent = await client[command](docId, component, { signal: abortSignal })
      if (sent.ok) return true
      // Another component has created the document meanwhile.
      if (command === 'create' && sent.failure.code === 'forbidden') return false
      if (command === 'create' && sent.failure.code === 'not_found') throw repositoryMissing(sent.failure, config.repository)
      throw sent.failure
    })

  const isNew = !(await exists(client, docId, signal)) && (await send('create'))
  if (!isNew) await send('update')
  await expectSize(client, { docId, compId, sizeBytes }, signal)
  const query = requestQuery('get', 'GET', { pVersion: protocolVersion, contRep: config.repository, docId, compId })
  return { path: `${config.url}?${query}`, bytesSent: sizeBytes, answer: { status: isNew ? 201 : 200 } }
}

const exists = async (client: Client, docId: string, signal: AbortSignal): Promise<boolean> => {
  const found = await client.info(docId, { signal })
  if (!found.ok && found.failure.code !== 'not_found') throw found.failure
  return found.ok
}

/** Asks the content server what it has stored. @throws DeliveryError if that has another length */
const expectSize = async (
  client: Client,
  { docId, compId, sizeBytes }: { docId: string; compId: string; sizeBytes: number },
  signal: AbortSignal,
): Promise<void> => {
  const facts = valueOf(await client.info(docId, { compId, signal }))
  const described = facts.components.filter((component) => component.compId === compId)
  const isUntold = described.some((component) => component.sizeBytes === undefined)
  const [stored] = isUntold ? valueOf(await measureDocument(client, { ...facts, components: described }, { signal })).components : described
  if (stored?.sizeBytes === sizeBytes) return
  const told = stored ? `${stored.sizeBytes} bytes` : 'no such component'
  throw new DeliveryError('content_altered', `the content server has accepted ${sizeBytes} bytes, but has ${told}`)
}

const probe = async (client: Client, { config }: ContentServerTarget, { signal }: AttemptContext): Promise<string> => {
  // In the form of the ids that the source system gives.
  const docId = randomUUID().replaceAll('-', '').toUpperCase()
  const body = Buffer.from('A test of a destination of Document Relay.')
  const component = { compId: 'data', contentType: 'text/plain', sizeBytes: body.length, body }
  const created = await client.create(docId, component, { signal })
  if (!created.ok) throw created.failure.code === 'not_found' ? repositoryMissing(created.failure, config.repository) : created.failure
  const described = await expectSize(client, { docId, ...component }, signal).then(
    () => undefined,
    (thrown: unknown) => ({ thrown }),
  )
  const deleted = await client.delete(docId, { signal })
  if (!deleted.ok) {
    const { code, status, message } = deleted.failure
    throw new ContentServerFailure(code, `the document ${docId} of this test remains there, because it could not be deleted: ${message}`, {
      ...(status !== undefined && { status }),
      cause: deleted.failure.cause,
    })
  }
  if (described) throw described.thrown
  return `The content server created a document in the repository ${config.repository}, told its size, and deleted it. No document remains.`
}

const valueOf = <T>(outcome: Outcome<T>): T => {
  if (!outcome.ok) throw outcome.failure
  return outcome.value
}
