import type { Receive } from '../../archive/receive.ts'
import type { UpdateDocument } from '../../archive/update.ts'
import type { OutboxMessage } from '../../db/outbox.ts'
import type { Start } from '../../db/starts.ts'
import { inSpan, type Tracing } from './tracing.ts'

type Receipt = Parameters<Receive>[0]

interface Commits {
  receive: Receive
  update: UpdateDocument
}

/** Returns the same use cases with a span around each transaction. The documents keep the span of their request for their deliveries. */
export const traceCommits = <UseCases extends Commits>(tracing: Tracing, useCases: UseCases): UseCases => {
  const commit = <T>(operation: string, received: Receipt, act: (traceparent: string | undefined) => Promise<T>): Promise<T> => {
    const traceparent = tracing.traceparent()
    const attributes = {
      'db.system.name': 'postgresql',
      'relay.operation': operation,
      'relay.repo_id': received.repository.repoId,
      'relay.doc_id': received.docId,
      'relay.components': received.components.length,
    }
    return inSpan(tracing, 'document.commit', { kind: 'client', attributes }, () => act(traceparent))
  }
  return {
    ...useCases,
    receive: (received: Receipt) => commit('create', received, (traceparent) => useCases.receive({ ...received, traceparent })),
    update: (received: Parameters<UpdateDocument>[0]) =>
      commit('update', received, (traceparent) => useCases.update({ ...received, traceparent })),
  }
}

const startsDelivery = (message: OutboxMessage | Start): message is Start =>
  ['startDocument', 'startDelivery', 'retryDelivery'].includes(message.kind)

/**
 * Returns the same function with a span for each message that starts a workflow, in the trace of the document. It links to the request
 * that is the cause, for example of a manual retry.
 */
export const traceSends =
  (tracing: Tracing, send: (message: OutboxMessage | Start) => Promise<void>): typeof send =>
  (message) => {
    if (!startsDelivery(message)) return send(message)
    const { traceparent, documentId } = message.input
    // The document was received without a trace.
    if (traceparent === undefined && tracing.traceparent() === undefined) return send(message)
    const attributes = { 'relay.message': message.kind, 'relay.document_id': documentId }
    return inSpan(tracing, 'workflow.start', { kind: 'producer', parent: traceparent, attributes }, () => send(message))
  }
