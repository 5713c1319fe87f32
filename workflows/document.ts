import {
  ApplicationFailure,
  CancellationScope,
  ChildWorkflowFailure,
  defineQuery,
  defineSignal,
  executeChild,
  isCancellation,
  proxyActivities,
  setCurrentDetails,
  setHandler,
  upsertSearchAttributes,
} from '@temporalio/workflow'
import { delivery } from './delivery.ts'
import {
  deliveryOptions,
  queries,
  searchAttributes,
  signals,
  type Activities,
  type DeliveryState,
  type DeliveryStatus,
  type DocumentInput,
} from './messages.ts'

const settledSignal = defineSignal<[DeliveryState]>(signals.settled)
const statusQuery = defineQuery<DeliveryState[]>(queries.status)

const { recordTermination } = proxyActivities<Activities>({ startToCloseTimeout: '30s' })

// the first of these that any delivery shows is the document's, as the database derives it too
const precedence: DeliveryStatus[] = ['failed', 'retrying', 'pending', 'delivered', 'cancelled']

/** One document: a child per destination. Open while one of them runs or may be retried. */
export async function document(input: DocumentInput): Promise<DeliveryState[]> {
  const states = new Map<string, DeliveryState>(input.destinations.map(({ id }) => [id, { destinationId: id, status: 'pending' }]))
  const overall = () => precedence.find((status) => [...states.values()].some((state) => state.status === status)) ?? 'pending'
  let published: DeliveryStatus = 'pending'
  const settle = (state: DeliveryState) => {
    // of a destination that another revision of this document goes to
    if (!states.has(state.destinationId)) return
    states.set(state.destinationId, state)
    setCurrentDetails(
      input.destinations
        .map(({ id, name }) => {
          const { status, error } = states.get(id)!
          return `- ${name}: **${status}**${error ? `: ${error}` : ''}`
        })
        .join('\n'),
    )
    // straight from pending to delivered is said by "completed": an event less for every document
    if (overall() === published || (published === 'pending' && overall() !== 'failed' && overall() !== 'retrying')) return
    published = overall()
    // the API calls it failed where nothing was delivered, and nothing ever will be
    const value = published === 'cancelled' ? 'failed' : published
    if (input.searchAttributes) upsertSearchAttributes([{ key: searchAttributes.status, value }])
  }
  setHandler(statusQuery, () => [...states.values()])
  setHandler(settledSignal, settle)

  await Promise.all(
    input.destinations.map(async (destination) => {
      const { destinations: _, ...shared } = input
      try {
        settle(await executeChild(delivery, { ...deliveryOptions({ ...shared, destination }), parentClosePolicy: 'REQUEST_CANCEL' }))
      } catch (thrown) {
        if (CancellationScope.current().consideredCancelled) throw thrown
        const known = states.get(destination.id)!
        if (isCancellation(thrown)) settle({ destinationId: destination.id, status: 'cancelled' })
        // else its window has closed, and it has told us before
        else if (known.status !== 'failed') {
          const error = 'its workflow was ended by hand'
          if (thrown instanceof ChildWorkflowFailure) {
            await recordTermination({ documentId: input.documentId, destinationId: destination.id, error })
          }
          settle({ ...known, status: 'failed', error })
        }
      }
    }),
  )

  if (overall() === 'delivered') return [...states.values()]
  const missing = input.destinations.flatMap(({ id, name }) => {
    const { status, error } = states.get(id)!
    return status === 'delivered' ? [] : [`${name} (${status}${error ? `: ${error}` : ''})`]
  })
  throw ApplicationFailure.nonRetryable(`not delivered to ${missing.join(', ')}`, 'DocumentNotDelivered', [...states.values()])
}
