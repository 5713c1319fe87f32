import { condition, continueAsNew, proxyActivities, setCurrentDetails, setHandler, workflowInfo } from '@temporalio/workflow'
import { checkAgainSignal, type WakeActivities, type WakeInput } from './messages.ts'

const { wakeNextPage } = proxyActivities<WakeActivities>({
  startToCloseTimeout: '1m',
  retry: { initialInterval: '1s', backoffCoefficient: 2, maximumInterval: '15s' },
})

const minPauseMs = 1_000
const maxPauseMs = 30_000
// If fewer were woken after a pause, the pause doubles. It is half of a page, so the woken deliveries last for the doubled pause.
const fewDeliveries = 100

/**
 * Wakes the deliveries that wait for a destination whose circuit has closed, page by page at the pace at which they are delivered. If the
 * circuit is not closed, wakes a few, one of which is the next trial. There is at most one run per destination at a time.
 */
export async function wakeDeliveries({ workspace, destination, progress }: WakeInput): Promise<string> {
  let isAsked = false
  setHandler(checkAgainSignal, () => {
    isAsked = true
  })
  let { startedAt, woken, position } = progress ?? { startedAt: Date.now(), woken: 0 }
  for (let pauseMs = minPauseMs; ;) {
    // The circuit has opened and closed again: deliveries that were woken before may have asked in vain.
    if (isAsked) [isAsked, startedAt, position] = [false, Date.now(), undefined]
    const page = await wakeNextPage({ destinationId: destination.id, startedAt, position })
    position = page.position
    woken += page.count
    const summary = `woke ${woken} deliveries${page.stopped ? `, then stopped: ${page.stopped}` : ''}`
    setCurrentDetails(summary)
    if (page.isLast && !(isAsked as boolean)) return summary
    pauseMs = page.count < fewDeliveries ? Math.min(2 * pauseMs, maxPauseMs) : minPauseMs
    await condition(() => isAsked, pauseMs, { summary: `waiting until ${destination.name} has taken what was woken` })
    if (workflowInfo().continueAsNewSuggested && !isAsked)
      await continueAsNew<typeof wakeDeliveries>({ workspace, destination, progress: { startedAt, woken, position } })
  }
}
