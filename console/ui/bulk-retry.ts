import { useEffect, useState } from 'preact/hooks'
import { call, callRaw, may, toApiError, type ApiError, type Schemas } from '../api.ts'
import { html } from '../html.ts'
import { useLive } from '../live.ts'
import { inLanguage } from '../preferences.ts'
import * as attentionCatalogue from '../texts/attention.ts'
import { announce, Confirm, ErrorNotice, Loaded } from './parts.ts'

const progressMs = 1_000
/** Poll interval after the bulk retry has ended, while its deliveries are under way. */
const outcomeMs = 3_000

/** What a bulk retry takes. */
export type Target = FailedTarget | DiscardedTarget | DeliveredTarget

/** Documents that a destination has, and is to get again. */
interface DeliveredTarget {
  action: 'deliver'
  destinationId: string
  destinationName: string
  /** All documents, unless some are given. */
  documentIds?: string[]
  /** Dates of the delivery. */
  deliveredFrom?: string | undefined
  deliveredTo?: string | undefined
}

/** The discarded documents of a repository. */
interface DiscardedTarget {
  action: 'replay' | 'acknowledge'
  repoId: string
}

/** The deliveries to a destination and, unless all of them, with an error code. */
interface FailedTarget {
  action: 'retry'
  destinationId: string
  destinationName: string
  /** `none` if the error has no code. */
  errorCode?: string | undefined
}

const filterOf = (target: Target) => {
  if (target.action === 'retry') return { destination_id: target.destinationId, error_code: target.errorCode }
  if (target.action !== 'deliver') return { repo_id: target.repoId }
  const { destinationId, documentIds, deliveredFrom, deliveredTo } = target
  return { destination_id: destinationId, again: true, document_ids: documentIds, delivered_from: deliveredFrom, delivered_to: deliveredTo }
}

/** The progress of a bulk retry, until it has ended. */
export const BulkRetryProgress = ({ id, onEnd }: { id: string; onEnd: () => void }) => {
  const words = inLanguage(attentionCatalogue)
  const [refreshMs, setRefreshMs] = useState(progressMs)
  const [error, setError] = useState<ApiError>()
  const live = useLive(id, (abort) => call<Schemas['SingleBulkRetryResponse']>('GET', `/bulk-retries/${id}`, { signal: abort }), refreshMs)
  const { status, open_deliveries: open } = live.data?.data.attributes ?? {}
  useEffect(() => {
    if (status === undefined || status === 'running') return
    announce(words.bulk[live.data!.data.attributes.action][status])
    onEnd()
  }, [status])
  useEffect(() => {
    if (status !== undefined && status !== 'running') setRefreshMs(open === 0 ? 0 : outcomeMs)
  }, [status, open])
  const stop = () =>
    callRaw('POST', `/bulk-retries/${id}/cancel`).then(
      () => live.reload(),
      (thrown: unknown) => setError(toApiError(thrown)),
    )
  return html`<${Loaded} live=${live}>
    ${() => {
      const { action, skipped_documents: skipped, ...counts } = live.data!.data.attributes
      const isRetry = action === 'retry'
      const done = isRetry ? counts.retried_deliveries : counts.retried_documents
      const of = isRetry ? counts.matched_deliveries : counts.matched_documents
      const title = words.bulk[action][status!]
      const shown = isRetry ? words.progress(done, of) : words.documentProgress(done, of)
      return html`<div class="progress">
        <label>${title}: ${shown}<progress max=${Math.max(1, of)} value=${of === 0 ? 1 : done}></progress></label>
        ${
          counts.retried_deliveries > 0 &&
          html`<p>${words.outcome(counts.delivered_deliveries, counts.failed_deliveries, counts.open_deliveries, isRetry)}</p>`
        }
        ${(action === 'replay' || action === 'deliver') && skipped > 0 && html`<p>${words.skipped[action](skipped)}</p>`}
        ${error && html`<${ErrorNotice} error=${error} />`}
        ${
          status === 'running' &&
          may('member') &&
          html`<button type="button" class="button" onClick=${() => void stop()}>${words.stop}</button>`
        }
      </div>`
    }}
  </${Loaded}>`
}

/** Says what a bulk retry would take, and starts it. */
export const ConfirmBulkRetry = ({
  target,
  onStarted,
  onClose,
}: {
  target: Target
  onStarted: (id: string) => void
  onClose: () => void
}) => {
  const words = inLanguage(attentionCatalogue)
  const retry = (dryRun: boolean, signal?: AbortSignal) =>
    call<Schemas['StartedBulkRetryResponse']>('POST', `/documents/${target.action}`, {
      body: { dry_run: dryRun, ...filterOf(target) },
      signal,
      changesNothing: dryRun,
    })
  const live = useLive(JSON.stringify(target), (signal) => retry(true, signal), 0)
  const start = async () => {
    onStarted((await retry(false)).data.id!)
    announce(words.bulk[target.action].running)
  }
  return html`<${Confirm}
    title=${words.confirmTitles[target.action]}
    action=${words.confirmActions[target.action]}
    onConfirm=${start}
    onClose=${onClose}
  >
    <${Loaded} live=${live}>
      ${() => {
        const { matched_deliveries: deliveries, matched_documents: documents } = live.data!.data.attributes
        if (target.action === 'deliver') return html`<p>${words.confirmAgain(documents, target.destinationName)}</p>`
        if (target.action !== 'retry') {
          return html`<p>${words.confirmDiscarded[target.action](documents, target.repoId)}</p>`
        }
        const { destinationName: name, errorCode } = target
        return html`<p>
          ${
            errorCode === undefined
              ? words.confirm(deliveries, documents, name)
              : words.confirmCode(deliveries, documents, name, errorCode === 'none' ? words.noCode : errorCode)
          }
        </p>`
      }}
    </${Loaded}>
  </${Confirm}>`
}
