import { useEffect, useState } from 'preact/hooks'
import { call, callRaw, may, toApiError, type ApiError, type Schemas } from '../api.ts'
import { html } from '../html.ts'
import { useLive } from '../live.ts'
import { inLanguage } from '../preferences.ts'
import * as attentionCatalogue from '../texts/attention.ts'
import { announce, Confirm, ErrorNotice, Loaded } from './parts.ts'

const attentionWords = inLanguage(attentionCatalogue)

const progressMs = 1_000

/** The deliveries that a bulk retry takes: of a destination and, unless all of them, with an error code. */
export interface Target {
  destinationId: string
  destinationName: string
  /** `none` if the error has no code. */
  errorCode?: string | undefined
}

const filterOf = ({ destinationId, errorCode }: Target) => ({
  destination_id: destinationId,
  ...(errorCode !== undefined && { error_code: errorCode }),
})

/** The progress of a bulk retry, until it has ended. */
export const BulkRetryProgress = ({ id, onEnd }: { id: string; onEnd: () => void }) => {
  const words = attentionWords()
  const [hasEnded, setEnded] = useState(false)
  const [error, setError] = useState<ApiError>()
  const live = useLive(
    id,
    (abort) => call<Schemas['BulkRetryResponse']>('GET', `/bulk-retries/${id}`, { signal: abort }),
    hasEnded ? 0 : progressMs,
  )
  const status = live.data?.data.attributes.status
  useEffect(() => {
    if (status === undefined || status === 'running') return
    setEnded(true)
    announce(status === 'completed' ? words.completed : words.wasCancelled)
    onEnd()
  }, [status])
  const stop = () =>
    callRaw('POST', `/bulk-retries/${id}/cancel`).then(
      () => live.reload(),
      (thrown: unknown) => setError(toApiError(thrown)),
    )
  return html`<${Loaded} live=${live}>
    ${() => {
      const { retried_deliveries: done, matched_deliveries: of } = live.data!.data.attributes
      const title = { running: words.running, completed: words.completed, cancelled: words.wasCancelled }[status!]
      return html`<div class="progress">
        <label>${title}: ${words.progress(done, of)}<progress max=${Math.max(1, of)} value=${of === 0 ? 1 : done}></progress></label>
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
  const words = attentionWords()
  const { destinationName: name, errorCode } = target
  const retry = (dryRun: boolean, signal?: AbortSignal) =>
    call<Schemas['StartedBulkRetryResponse']>('POST', '/documents/retry', {
      body: { dry_run: dryRun, ...filterOf(target) },
      signal,
      changesNothing: dryRun,
    })
  const live = useLive(JSON.stringify(filterOf(target)), (signal) => retry(true, signal), 0)
  const start = async () => {
    onStarted((await retry(false)).data.id!)
    announce(words.running)
  }
  return html`<${Confirm} title=${words.confirmTitle} action=${words.retryAll} onConfirm=${start} onClose=${onClose}>
    <${Loaded} live=${live}>
      ${() => {
        const { matched_deliveries: deliveries, matched_documents: documents } = live.data!.data.attributes
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
