import type { Capture } from '../../db/captures.ts'
import { plainText, type Answer } from '../answer.ts'
import { asRefusal } from '../as-refusal.ts'
import type { CommandHandler } from '../call.ts'
import { discardComponents, withDocuments, type ReceivedDocument } from '../components.ts'
import { asLine } from '../lines.ts'
import { noMetadata } from '../metadata.ts'
import { Refusal } from '../refusal.ts'

// one line of the answer: a type, as an interface is no record
type Outcome = {
  docId: string
  retCode: '201' | '403' | '500'
  errorDescription?: string
}

/**
 * Many documents in one request, each of them whole or not at all, and each by itself. The body is taken in and found well-formed before
 * the first one is committed.
 */
export const mCreate: CommandHandler = async (call, deps): Promise<Answer> => {
  const { source, command, request } = call
  const { receivedAt } = request
  const docProt = command.find('docProt') ?? null

  let away: Refusal | undefined

  const createOne = async ({ docId, components }: ReceivedDocument, captured: Capture | undefined): Promise<Outcome> => {
    try {
      const received = await deps.receipts.receive({ source, docId, docProt, metadata: noMetadata, components, receivedAt, captured })
      deps.launch(received.messages)
      if (received.created) return { docId, retCode: '201' }
      await discardComponents(components)
      return { docId, retCode: '403', errorDescription: 'document already exists' }
    } catch (thrown) {
      await discardComponents(components)
      const refusal = asRefusal(thrown)
      const { code, cause } = refusal
      deps.log[code === 'internal_error' ? 'error' : 'warn']({ docId, code, err: cause }, 'one of many documents was not created')
      if (code === 'unavailable') away = refusal
      return failed(docId, refusal)
    }
  }

  /** The first document that is created takes the captured request along, with the answer that there will be if all are. */
  const createAll = async (documents: ReceivedDocument[], hoped: Answer): Promise<Outcome[]> => {
    const outcomes: Outcome[] = []
    for (const document of documents) {
      outcomes.push(await createOne(document, outcomes.some(isCreated) ? undefined : call.captured(hoped)))
      if (!away) continue
      // the next one would wait just as long and in vain
      const left = documents.slice(outcomes.length)
      await discardComponents(left.flatMap(({ components }) => components))
      return [...outcomes, ...left.map(({ docId }) => failed(docId, away!))]
    }
    return outcomes
  }

  const store = source.wires.length > 0 ? deps.contents.writeTo : undefined
  return withDocuments(call, deps, store, async (documents) => {
    // the one docId that a signature covers
    if (documents[0]?.docId !== command.get('docId')) {
      throw new Refusal('invalid_parameter', 'the docId of the URL must be that of the first part')
    }
    const hoped = answerOf(documents.map(({ docId }) => ({ docId, retCode: '201' })))
    const outcomes = await createAll(documents, hoped)
    if (away && !outcomes.some(isCreated)) throw away
    return outcomes.every(isCreated) ? hoped : answerOf(outcomes)
  })
}

const isCreated = ({ retCode }: Outcome) => retCode === '201'

const failed = (docId: string, { code, message }: Refusal): Outcome => ({ docId, retCode: '500', errorDescription: `${code}: ${message}` })

const answerOf = (outcomes: Outcome[]): Answer => {
  const body = outcomes.map(asLine).join('')
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
