import { z } from 'zod'
import type { Database } from '../db/database.ts'
import { createDocuments } from '../db/documents.ts'
import type { RetryMessage } from '../db/outbox.ts'
import type { Workflow } from '../db/planned-documents.ts'
import { createRetries, type Unretried } from '../db/retries.ts'
import { AppError } from '../errors.ts'
import { isId } from '../ids.ts'
import type { Temporal } from '../temporal/client.ts'
import { actorOf } from './actor.ts'
import { documentAttributes, presentDocument } from './documents.ts'
import { endpoint, type Endpoint } from './endpoint.ts'
import { notFound } from './faults.ts'
import type { LaunchDeps } from './launch.ts'
import { idParams, one, resource } from './schemas.ts'

export interface RetryDeps extends Pick<LaunchDeps, 'launch'> {
  db: Database
  isUnderWay: Temporal['isUnderWay']
  config: Workflow
}

const response = one(resource('document', documentAttributes.omit({ comp_id: true, content_type: true, size_bytes: true })))

const deliveryParams = idParams.extend({ destinationId: z.string().refine(isId).describe('The destination that it goes to') })

const refusals: Record<Unretried['status'], string> = {
  pending: 'This delivery is on its way: there is nothing to retry.',
  retrying: 'This delivery is being retried already.',
  held: 'This delivery is held, as its connection is inactive: activate the connection.',
  delivered: 'This delivery has been made.',
  cancelled: 'This delivery was cancelled.',
  failed: 'The destination of this delivery has been deleted.',
}

export const retryEndpoints = ({ db, launch, isUnderWay, config }: RetryDeps): Endpoint[] => {
  const retries = createRetries(db, config)
  const documents = createDocuments(db)
  /** Reads the document before anybody is told: what is retried is shown as such, however quickly it is delivered. */
  const showAndLaunch = async (workspaceId: string, id: string, messages: RetryMessage[]) => {
    try {
      const found = await documents.find(workspaceId, id)
      if (!found) throw notFound()
      return { data: presentDocument(found) }
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
      summary: 'Retries every failed delivery of a document, with a fresh retry budget; what was delivered is not delivered again',
      params: idParams,
      response,
      conflict: 'None of its deliveries has failed, or only such whose destination is deleted',
      status: 200,
      handle: async ({ params: { id } }, { workspaceId, actor }) => {
        const retried = await retries.retryDocument({ workspaceId, documentId: id, actor: actorOf(actor) })
        if (retried === 'unknown') throw notFound()
        if (retried.messages.length === 0) throw new AppError('conflict', 'This document has no failed delivery that could be retried.')
        return showAndLaunch(workspaceId, id, retried.messages)
      },
    }),

    endpoint({
      method: 'POST',
      path: '/documents/:id/deliveries/:destinationId/retry',
      level: 'member',
      audit: 'document.retried',
      summary: 'Retries one delivery that has failed, was left behind, or is held by nothing any more',
      params: deliveryParams,
      response,
      conflict: 'It is on its way, has been made, was cancelled, or is held by an inactive connection',
      status: 200,
      handle: async ({ params: { id, destinationId } }, { workspaceId, actor }) => {
        const request = { workspaceId, documentId: id, destinationId, actor: actorOf(actor) }
        let retried = await retries.retryDelivery(request, { stranded: false })
        if (retried !== 'unknown' && 'status' in retried && ['pending', 'retrying'].includes(retried.status)) {
          // somebody may have terminated its workflow
          const { revision } = retried
          const stranded = !(await orUnavailable(isUnderWay({ documentId: id, revision, destinationId })))
          if (stranded) retried = await retries.retryDelivery(request, { stranded })
        }
        if (retried === 'unknown') throw notFound()
        if ('status' in retried) throw new AppError('conflict', refusals[retried.status])
        return showAndLaunch(workspaceId, id, retried.messages)
      },
    }),
  ]
}

const orUnavailable = async <T>(question: Promise<T>): Promise<T> => {
  try {
    return await question
  } catch (thrown) {
    throw new AppError('unavailable', 'Temporal cannot be asked whether this delivery is under way. Please try again shortly.', {
      cause: thrown,
    })
  }
}
