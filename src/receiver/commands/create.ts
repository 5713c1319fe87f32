import type { IncomingMessage } from 'node:http'
import type { Receipt } from '../../db/receipts.ts'
import type { Answer } from '../answer.ts'
import { decodeHeader } from '../bytes.ts'
import type { CommandHandler } from '../call.ts'
import { discardComponents, takeComponents } from '../components.ts'
import { Refusal } from '../refusal.ts'

/** A new document, whole or not at all: one component by PUT, any number of them by POST. */
export const create: CommandHandler = async (call, deps): Promise<Answer> => {
  const { source, command, request, receivedAt } = call
  const docId = command.get('docId')
  const metadata = metadataOf(request)
  const exists = () => new Refusal('document_exists', 'there is such a document already')
  // spares a twin a long body; who wins is decided by the database at the end
  if (isLong(request) && (await deps.archiveDocuments.exists(source.repository.id, docId))) throw exists()

  const store = source.wires.length > 0 ? deps.contents.writeTo : undefined
  const components = await takeComponents(call, deps, store)
  try {
    const docProt = command.find('docProt') ?? null
    const received = await deps.receipts.receive({ source, docId, docProt, metadata, components, receivedAt })
    if (!received.created) throw exists()
    deps.launch(received.messages)
  } catch (thrown) {
    await discardComponents(components)
    throw thrown
  }
  return { status: 201, reason: 'created', headers: {}, body: '' }
}

// shorter than this, reading the body is cheaper than asking the database first
const longBytes = 256 * 1024

const isLong = ({ headers }: IncomingMessage) => !(Number(headers['content-length']) <= longBytes)

const valueMaxCharacters = 255

/** What a source that can set headers tells of its business object along with the document. */
const metadataOf = ({ headers }: IncomingMessage): Receipt['metadata'] => {
  const valueOf = (name: string): string | null => {
    const value = headers[name]
    if (typeof value !== 'string' || value === '') return null
    if (value.length > valueMaxCharacters) throw new Refusal('invalid_parameter', `${name} is too long`)
    return decodeHeader(value)
  }
  return {
    erpObjectType: valueOf('x-relay-object-type'),
    erpObjectId: valueOf('x-relay-object-id'),
    arObject: valueOf('x-relay-ar-object'),
  }
}
