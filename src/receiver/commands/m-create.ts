import { noMetadata } from '../../domain/template.ts'
import { asciiLine, plainText, type Answer } from '../answer.ts'
import type { CommandHandler } from '../command-context.ts'
import { discardComponents, storeDocuments, type SentDocument } from '../components.ts'
import { Refusal, toRefusal } from '../refusal.ts'
import { existsUpstream } from '../upstream.ts'

// One line of the answer. A type alias, because an interface is not assignable to a record.
type Outcome = {
  docId: string
  retCode: '201' | '403' | '500'
  errorDescription?: string
}

/**
 * Creates several documents, each whole or not at all and independently of the others. The whole body is read and found well-formed
 * before the first document is committed.
 */
export const mCreate: CommandHandler = async (context, deps): Promise<Answer> => {
  const { repository, command, exchange } = context
  const { id: requestId, receivedAt } = exchange.request
  const docProt = command.find('docProt') ?? null

  let unavailable: Refusal | undefined

  const createOne = async ({ docId, components }: SentDocument, answer: Answer | undefined): Promise<Outcome> => {
    try {
      if (await existsUpstream(context, deps, docId)) {
        await discardComponents(components)
        return exists(docId)
      }
      const capture = answer && (await exchange.prepareCapture(answer))
      const received = await deps.receive({ repository, docId, docProt, metadata: noMetadata, components, receivedAt, requestId, capture })
      deps.receiverLog.documentsReceived(exchange, repository, docId, received.documents)
      if (received.atOnce) deps.launch(received.messages)
      if (received.created) return { docId, retCode: '201' }
      await discardComponents(components)
      return exists(docId)
    } catch (thrown) {
      await discardComponents(components)
      const refusal = toRefusal(thrown)
      const { code, cause } = refusal
      const failure = { request_id: requestId, doc_id: docId, code, err: cause }
      deps.log[code === 'internal_error' ? 'error' : 'warn'](failure, 'failed to create one document of an mCreate')
      if (code === 'unavailable' || code === 'upstream_failed' || code === 'home_failed') unavailable = refusal
      return failed(docId, refusal)
    }
  }

  /** The first document that is created takes the captured request, with the answer that is sent if all documents are created. */
  const createAll = async (documents: SentDocument[], successAnswer: Answer): Promise<Outcome[]> => {
    const outcomes: Outcome[] = []
    for (const document of documents) {
      outcomes.push(await createOne(document, outcomes.some(isCreated) ? undefined : successAnswer))
      if (!unavailable) continue
      // The next document would wait as long, and fail as well.
      const rest = documents.slice(outcomes.length)
      await discardComponents(rest.flatMap(({ components }) => components))
      return [...outcomes, ...rest.map(({ docId }) => failed(docId, unavailable!))]
    }
    return outcomes
  }

  const store = repository.routes.length > 0 ? deps.contents.writeTo : undefined
  return storeDocuments(context, deps, store, async (documents) => {
    // The signature covers the docId of the URL only.
    if (documents[0]?.docId !== command.get('docId')) {
      throw new Refusal('invalid_parameter', 'the docId of the URL must be the docId of the first part')
    }
    const successAnswer = answerOf(documents.map(({ docId }) => ({ docId, retCode: '201' })))
    const outcomes = await createAll(documents, successAnswer)
    if (unavailable && !outcomes.some(isCreated)) throw unavailable
    return outcomes.every(isCreated) ? successAnswer : answerOf(outcomes)
  })
}

const exists = (docId: string): Outcome => ({ docId, retCode: '403', errorDescription: 'document already exists' })

const isCreated = ({ retCode }: Outcome) => retCode === '201'

const failed = (docId: string, { code, message }: Refusal): Outcome => ({ docId, retCode: '500', errorDescription: `${code}: ${message}` })

const answerOf = (outcomes: Outcome[]): Answer => {
  const body = outcomes.map(asciiLine).join('')
  const headers = { 'Content-Type': plainText }
  const failures = outcomes.filter(({ retCode }) => retCode === '500').length
  if (failures > 0) {
    const description = `internal_error: ${failures} of ${outcomes.length} documents could not be created`
    return { status: 500, headers: { 'X-ErrorDescription': description, ...headers }, body }
  }
  return outcomes.some(({ retCode }) => retCode === '403')
    ? { status: 250, reason: 'missing documents created', headers, body }
    : { status: 201, reason: 'created', headers, body }
}
