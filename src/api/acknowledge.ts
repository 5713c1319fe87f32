import type { Documents } from '../archive/document-list.ts'
import { AppError } from '../base/errors.ts'
import { notFound } from '../base/refusals.ts'
import type { Acknowledge } from '../delivery/erase.ts'
import { actorOf } from '../workspace/authenticator.ts'
import { document, presentDocument } from './documents.ts'
import { endpoint, type Endpoint } from './endpoint.ts'
import { idParams, one } from './schemas.ts'

export interface AcknowledgeDeps {
  acknowledge: Acknowledge
  documents: Pick<Documents, 'find'>
}

export const acknowledgeEndpoints = ({ acknowledge, documents }: AcknowledgeDeps): Endpoint[] => [
  endpoint({
    method: 'POST',
    path: '/documents/:id/acknowledge',
    level: 'member',
    audit: 'document.acknowledged',
    summary: 'Acknowledge a failed document',
    description:
      'Marks a failed document that will not be retried, so that `GET /documents?status=failed&acknowledged=false` lists only documents ' +
      'that need attention. A bulk retry leaves it out. Each change of its status, for example by a retry, ends the acknowledgement.',
    params: idParams,
    response: one(document),
    conflict: 'The document has not failed.',
    status: 200,
    handle: async ({ params: { id } }, { workspaceId, actor }) => {
      const outcome = await acknowledge(workspaceId, id, actorOf(actor))
      const found = outcome && (await documents.find(workspaceId, id))
      if (!found) throw notFound()
      if (outcome !== 'acknowledged') {
        throw new AppError('conflict', `Only a failed document can be acknowledged. The status of this document is ${outcome}.`)
      }
      return { data: presentDocument(found) }
    },
  }),
]
