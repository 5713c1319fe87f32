import { useState } from 'preact/hooks'
import { call, toApiError, type ApiError, type Schemas } from '../api.ts'
import { html } from '../html.ts'
import { useLive } from '../live.ts'
import { inLanguage } from '../preferences.ts'
import * as destinationsCatalogue from '../texts/destinations.ts'
import { BulkRetryProgress, ConfirmBulkRetry } from './bulk-retry.ts'
import { announce, ErrorNotice, Notice } from './parts.ts'

const refreshMs = 30_000

const load = async (id: string, signal: AbortSignal) => {
  const [retry, stats] = await Promise.all([
    call<Schemas['StartedBulkRetryResponse']>('POST', '/documents/retry', {
      body: { dry_run: true, destination_id: id },
      signal,
      changesNothing: true,
    }),
    call<Schemas['StatsResponse']>('GET', '/stats', { query: { destination_id: id }, signal }),
  ])
  const { pending, retrying } = stats.data.attributes.present
  return { failed: retry.data.attributes.matched_deliveries, waiting: pending + retrying }
}

/**
 * Says what has not arrived at a destination, and offers to try it now, for people who have seen or repaired the cause.
 * @param isMended true after a test that succeeded, or a change since the last error
 */
export const Backlog = ({ id, name, isMended }: { id: string; name: string; isMended: boolean }) => {
  const words = inLanguage(destinationsCatalogue)
  const live = useLive(`backlog ${id}`, (signal) => load(id, signal), refreshMs)
  const [isAsked, setAsked] = useState(false)
  const [started, setStarted] = useState<string>()
  const [problem, setProblem] = useState<ApiError>()
  const tryNow = async () => {
    try {
      await call('POST', `/destinations/${id}/attempt`)
      announce(words.hastened)
    } catch (thrown) {
      setProblem(toApiError(thrown))
    }
    live.reload()
  }
  const { failed = 0, waiting = 0 } = live.data ?? {}
  return html`${started !== undefined && html`<${BulkRetryProgress} id=${started} onEnd=${live.reload} />`}
  ${problem && html`<${ErrorNotice} error=${problem} />`}
  ${
    failed > 0 &&
    started === undefined &&
    html`<${Notice} tone=${isMended ? 'info' : 'warn'}>
      <p>${isMended ? words.failedBefore(failed) : words.failedHere(failed)}</p>
      <button type="button" class=${`button ${isMended ? 'primary' : ''}`} onClick=${() => setAsked(true)}>${words.retryFailed}</button>
    </${Notice}>`
  }
  ${
    waiting > 0 &&
    html`<${Notice} tone="info">
      <p>${words.waitingHere(waiting)}</p>
      <button type="button" class="button" onClick=${() => void tryNow()}>${words.tryNow}</button>
    </${Notice}>`
  }
  ${
    isAsked &&
    html`<${ConfirmBulkRetry}
      target=${{ action: 'retry', destinationId: id, destinationName: name }}
      onStarted=${setStarted}
      onClose=${() => setAsked(false)}
    />`
  }`
}
