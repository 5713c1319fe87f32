import { Histogram, type Metric } from 'prom-client'
import { documentWorkflowId } from '../../workflows/ids.ts'
import type { InsertedDocument } from '../archive/receive.ts'
import type { ReceivingRepository } from '../archive/receiving-repository.ts'
import type { Log } from '../base/log.ts'
import { counterOf } from '../base/metrics.ts'
import { plainValue } from '../base/text.ts'
import { commandRules } from '../content-server/parameters.ts'
import type { Exchange } from './exchange.ts'
import type { Refusal } from './refusal.ts'

const commands = new Map(commandRules.map(({ command }) => [command.toLowerCase(), command]))
// A refused request can contain anything.
const valueMaxCharacters = 200

/** Creates the log lines and metrics of the receivers. */
export const createReceiverLog = (log: Log) => {
  const received = counterOf(
    'relay_documents_received_total',
    'Documents that were committed, by outcome: `accepted`, or `discarded` because they lead to no destination',
    ['outcome'],
  )
  const bytes = counterOf('relay_received_bytes_total', 'Bytes of the documents that were committed')
  const refusals = counterOf(
    'relay_receiver_refusals_total',
    'Requests to receivers that were refused, by the code of the refusal',
    ['code'],
    [{ code: 'quota_exceeded' }, { code: 'rate_limited' }],
  )
  const durations = new Histogram({
    name: 'relay_receiver_request_duration_seconds',
    help: 'Time from the arrival of a request to a receiver to its answer, by command and the class of the status',
    labelNames: ['command', 'status'],
    buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10, 60],
    registers: [],
  })

  const commandOf = ({ query }: Pick<Exchange, 'query'>) => commands.get(query.command.toLowerCase())
  const factsOf = ({ request, userSlug, workspaceSlug, query }: Exchange) => {
    const valueOf = (name: string) =>
      plainValue(query.parameters.find((parameter) => parameter.name.toLowerCase() === name)?.value ?? '', valueMaxCharacters) || undefined
    return {
      request_id: request.id,
      workspace: plainValue(`${userSlug}/${workspaceSlug}`, valueMaxCharacters),
      command: commandOf({ query }),
      repo_id: valueOf('contrep'),
      doc_id: valueOf('docid'),
      replay_of: request.replayOf ?? undefined,
    }
  }
  const unconnected = new Set<string>()
  /** Logs that documents of a repository reach no destination: once, until a connection has led from it to a destination again. */
  const warnIfUnconnected = (exchange: Exchange, { id, routes }: ReceivingRepository) => {
    if (routes.length > 0) unconnected.delete(id)
    else if (!unconnected.has(id)) {
      unconnected.add(id)
      const message = 'a document was acknowledged and is not delivered: no connection leads from its repository to a destination'
      log.warn(factsOf(exchange), message)
    }
  }
  const millisecondsSince = (time: Date) => Math.max(0, Date.now() - time.getTime())

  return {
    /** Returns the name of the command, if there is one. A request can contain anything. */
    commandOf,

    /** Documents have been committed. */
    documentsReceived: (exchange: Exchange, repository: ReceivingRepository, docId: string, documents: InsertedDocument[]): void => {
      const { workspace } = repository
      for (const { documentId, repoId, compId, contentType, sizeBytes, status, destinations, startsWorkflow } of documents) {
        const outcome = status === 'discarded' ? 'discarded' : 'accepted'
        received.inc({ outcome })
        bytes.inc(sizeBytes)
        const key = { documentId, workspace: `${workspace.userSlug}/${workspace.workspaceSlug}`, repoId, docId, compId }
        log.info(
          {
            event: 'document.received',
            ...factsOf(exchange),
            repo_id: repoId,
            doc_id: docId,
            comp_id: compId,
            document_id: documentId,
            workflow_id: startsWorkflow ? documentWorkflowId(key) : undefined,
            outcome,
            content_type: contentType,
            size_bytes: sizeBytes,
            destinations,
            duration_ms: millisecondsSince(exchange.request.receivedAt),
          },
          'document received',
        )
      }
      if (documents.length > 0) warnIfUnconnected(exchange, repository)
    },

    /** A request is refused. */
    refused: (exchange: Exchange, { code, message, cause }: Refusal): void => {
      refusals.inc({ code })
      const level = code === 'internal_error' ? 'error' : code === 'unavailable' ? 'warn' : 'info'
      const { sourceIp } = exchange.request
      log[level](
        { event: 'receiver.refused', ...factsOf(exchange), code, reason: message, source_ip: sourceIp, err: cause },
        'request refused',
      )
    },

    /** A request has been answered. */
    answered: (exchange: Exchange, status: number): void => {
      const durationMs = millisecondsSince(exchange.request.receivedAt)
      const command = commandOf(exchange) ?? 'unknown'
      durations.observe({ command, status: `${Math.trunc(status / 100)}xx` }, durationMs / 1_000)
      log.debug({ event: 'receiver.request', ...factsOf(exchange), status, duration_ms: durationMs }, 'request')
    },

    metrics: [received, bytes, refusals, durations] as Metric[],
  }
}

export type ReceiverLog = ReturnType<typeof createReceiverLog>
