import { z } from 'zod'
import { documentAttributes } from '../archive/document-fields.ts'
import type { Documents } from '../archive/document-list.ts'
import { AppError } from '../base/errors.ts'
import { actorOf } from '../db/audit.ts'
import type { WakeDelivery } from '../db/outbox.ts'
import type { RetryDelivery } from '../db/starts.ts'
import type { AttemptNow } from '../delivery/attempt-now.ts'
import type { IsDeliveryRunning, Retry } from '../delivery/retry.ts'
import type { WakeNext } from '../delivery/wake.ts'
import { resourceId } from '../http/filters.ts'
import { presentDocument } from './document-resource.ts'
import { endpoint, type Endpoint } from './endpoint.ts'
import type { LaunchDeps } from './launch.ts'
import { idParams, one, resource } from './schemas.ts'

interface RetryDeps extends Pick<LaunchDeps, 'launch'> {
  retry: Retry
  attemptNow: Pick<AttemptNow, 'attemptDocument' | 'attemptDestination'>
  documents: Pick<Documents, 'find'>
  isDeliveryRunning: IsDeliveryRunning
  wakeNext: WakeNext
}

const retriedAttributes = documentAttributes.pick({ doc_id: true, repo_id: true, status: true, received_at: true, deliveries: true })
const response = one(resource('RetriedDocument', 'document', retriedAttributes))

const attemptedDestination = one(resource('AttemptedDestination', 'destination', z.object({ waiting_deliveries: z.int() })))

const deliveryParams = idParams.extend({ destinationId: resourceId.describe('Id of the destination') })

export const retryEndpoints = ({ retry, attemptNow, documents, launch, wakeNext, isDeliveryRunning }: RetryDeps): Endpoint[] => {
  const isRunning: IsDeliveryRunning = async (...delivery) => {
    try {
      return await isDeliveryRunning(...delivery)
    } catch (thrown) {
      const message = 'Temporal is unavailable, so the state of this delivery is unknown. Try again shortly.'
      throw new AppError('unavailable', message, { cause: thrown })
    }
  }
  /** Reads the document before sending the messages, so that the answer shows `retrying` however fast the delivery is. */
  const presentAndLaunch = async (workspaceId: string, id: string, messages: (RetryDelivery | WakeDelivery)[]) => {
    try {
      return { data: presentDocument(await documents.find(workspaceId, id)) }
    } finally {
      launch(messages)
    }
  }

  return [
    endpoint({
      method: 'POST',
      path: '/documents/:id/retry',
      level: 'member',
      audit: 'document.retried',
      summary: 'Retry a document',
      description:
        'Retries the failed and cancelled deliveries of the document with a new retry budget, if their destinations still exist. ' +
        'Deliveries that succeeded are not repeated.',
      params: idParams,
      response,
      conflict: 'The document has no failed or cancelled delivery to an existing destination (`nothing_to_retry`).',
      handle: async ({ params: { id } }, { workspaceId, actor }) => {
        const messages = await retry.retryDocument({ workspaceId, documentId: id, actor: actorOf(actor) })
        return presentAndLaunch(workspaceId, id, messages)
      },
    }),

    endpoint({
      method: 'POST',
      path: '/documents/:id/attempt',
      level: 'member',
      audit: 'document.attempted',
      summary: 'Attempt a document now',
      description:
        'Makes the next attempt of every delivery of the document that waits for it, or in the line of its destination, at once. It uses up the ' +
        'retry budget like any other attempt.',
      params: idParams,
      response,
      conflict: 'No delivery of the document waits for an attempt (`nothing_to_retry`).',
      handle: async ({ params: { id } }, { workspaceId, actor }) => {
        const messages = await attemptNow.attemptDocument({ workspaceId, documentId: id, actor: actorOf(actor) })
        return presentAndLaunch(workspaceId, id, messages)
      },
    }),

    endpoint({
      method: 'POST',
      path: '/documents/:id/deliveries/:destinationId/attempt',
      level: 'member',
      audit: 'document.attempted',
      summary: 'Attempt a delivery now',
      description: 'Makes the next attempt of a delivery that waits for it, or in the line of its destination, at once.',
      params: deliveryParams,
      response,
      conflict: 'The delivery does not wait for an attempt (`nothing_to_retry`).',
      handle: async ({ params: { id, destinationId } }, { workspaceId, actor }) => {
        const request = { workspaceId, documentId: id, destinationId, actor: actorOf(actor) }
        return presentAndLaunch(workspaceId, id, await attemptNow.attemptDocument(request))
      },
    }),

    endpoint({
      method: 'POST',
      path: '/destinations/:id/attempt',
      level: 'member',
      audit: 'destination.attempted',
      summary: 'Attempt the deliveries of a destination now',
      description:
        'Has the next attempt of every delivery to the destination made at once that waits for it, by a workflow that shows its progress in ' +
        'Temporal. Deliveries in the line of the destination keep their order, and an open circuit lets the first of them try. ' +
        '`waiting_deliveries` is the number of deliveries that wait now, at most 10,000.',
      params: idParams,
      response: attemptedDestination,
      status: 202,
      handle: async ({ params: { id } }, { workspaceId, actor }) => {
        const { waiting, messages } = await attemptNow.attemptDestination(workspaceId, id, actorOf(actor))
        launch(messages)
        await wakeNext(id)
        return { data: { id, type: 'destination' as const, attributes: { waitingDeliveries: waiting } } }
      },
    }),

    endpoint({
      method: 'POST',
      path: '/documents/:id/deliveries/:destinationId/retry',
      level: 'member',
      audit: 'document.retried',
      summary: 'Retry a delivery',
      description:
        'Retries a delivery that has failed or was cancelled, whose workflow no longer runs, or that is held although its connection is active.',
      params: deliveryParams,
      response,
      conflict: 'The delivery is in progress, has succeeded, is held by an inactive connection or cannot be made (`nothing_to_retry`).',
      handle: async ({ params: { id, destinationId } }, { workspaceId, actor, elsewhere }) => {
        const request = { workspaceId, documentId: id, destinationId, actor: actorOf(actor) }
        const askTemporal: IsDeliveryRunning = (...delivery) => elsewhere(() => isRunning(...delivery))
        return presentAndLaunch(workspaceId, id, await retry.retryDelivery(request, askTemporal))
      },
    }),
  ]
}
