import { z } from 'zod'
import { listConditions, searchConditions } from '../archive/document-fields.ts'
import type { DocumentContent, Documents } from '../archive/document-list.ts'
import { AppError } from '../base/errors.ts'
import { discardSignal, type Stores } from '../content/store.ts'
import { actorOf } from '../db/audit.ts'
import type { Acknowledge } from '../delivery/acknowledge.ts'
import type { Erase } from '../delivery/erase.ts'
import { isFinal, openDeliveryStatuses, openOf, type DocumentStatus } from '../domain/delivery-states.ts'
import { fileNameOf } from '../domain/file-name.ts'
import type { Download } from '../http/attachments.ts'
import { document, presentDocument, presentListed, presentSingle, singleDocument } from './document-resource.ts'
import { endpoint, type Endpoint } from './endpoint.ts'
import type { LaunchDeps } from './launch.ts'
import { cursorPageOf, followQuery, isOneWay, pageOfMany, pageQuery, toCursorPage, toPage } from './pagination.ts'
import { idParams, one } from './schemas.ts'
import { waitSeconds, waitSecondsMax, type Topic } from './waiting.ts'

export interface DocumentDeps {
  documents: Documents
  contents: Stores
  /** Requests wait for the final status of a document. */
  documentEnds: Topic<DocumentStatus>
}

/** Returns a document's bytes as a download. @throws AppError 503 if this process has no access to the content store */
export const downloadOf = (contents: DocumentDeps['contents'], { content, contentType }: DocumentContent, fileName: string): Download => {
  const store = contents[content.store]
  if (!store)
    throw new AppError('unavailable', `The content is in the ${content.store} store, which this process is not configured to use.`)
  // Bytes are only ever added to a content, so its size tells its versions apart.
  const etag = `"${content.id}-${content.sizeBytes}"`
  return { contentType, fileName, sizeBytes: content.sizeBytes, open: (range) => store.read(content, range), etag }
}

export const documentEndpoints = ({ documents, contents, documentEnds }: DocumentDeps): Endpoint[] => {
  return [
    endpoint({
      method: 'GET',
      path: '/documents',
      level: 'viewer',
      summary: 'List documents',
      description: 'Returns the documents of the workspace, newest first, in numbered pages. `GET /documents/search` has more conditions.',
      query: pageQuery.extend(listConditions),
      response: pageOfMany(document),
      handle: async ({ query }, { workspaceId }) => toPage(await documents.list(workspaceId, query), query, presentListed(query.include)),
    }),

    endpoint({
      method: 'GET',
      path: '/documents/search',
      operation: 'searchDocuments',
      level: 'viewer',
      summary: 'Search documents',
      description:
        'Returns the documents that meet every condition, newest first. There is no total: continue with `before` until `next_cursor` is null. A ' +
        'page may have fewer documents than `per_page`, even none, because one request reads a limited number of documents. ' +
        'With `after`, the documents are oldest first, by the time of receipt. A document is found when it was received completely, so a reader that ' +
        'follows them misses one that took more than a minute: `GET /events` has no gap.',
      query: followQuery.extend({ ...listConditions, ...searchConditions }).refine(...isOneWay),
      response: cursorPageOf(document, 'DocumentSearchResult'),
      handle: async ({ query: { include, ...search } }, { workspaceId }) =>
        toCursorPage(await documents.search(workspaceId, search), search, presentListed(include)),
    }),

    endpoint({
      method: 'GET',
      path: '/documents/:id',
      level: 'viewer',
      summary: 'Retrieve a document',
      description:
        'Returns the document with its metadata and its location at each destination. With `wait_seconds`, a document that is `pending` or ' +
        '`retrying` is returned when it has another status, or after this time as it is then.',
      params: idParams,
      query: z.strictObject({
        wait_seconds: waitSeconds
          .optional()
          .describe(`How long to wait for a final status: at most ${waitSecondsMax} seconds. 0 does not wait.`),
      }),
      response: one(singleDocument),
      handle: async ({ params: { id }, query: { waitSeconds: seconds = 0 } }, { workspaceId, actor, signal, elsewhere }) => {
        const found = await documents.find(workspaceId, id)
        if (seconds === 0 || isFinal(found.status)) return { data: presentSingle(found) }
        await elsewhere(() => documentEnds.wait(id, { actor, seconds, signal }))
        return { data: presentSingle(await documents.find(workspaceId, id)) }
      },
    }),

    endpoint({
      method: 'GET',
      path: '/documents/:id/content',
      level: 'viewer',
      summary: 'Download the content of a document',
      description:
        'Returns the bytes as they were received. The answer is 404 if `content_retained` is false. The header `Range` with one range ' +
        'of bytes is answered with 206, and `If-Range` compares the `etag`.',
      params: idParams,
      response: 'bytes',
      hasRanges: true,
      handle: async ({ params }, { workspaceId }) => {
        const found = await documents.findContent(workspaceId, params.id)
        return downloadOf(contents, found, fileNameOf(found))
      },
    }),
  ]
}

const openDelivery = z
  .object({ destination_id: z.string(), destination_name: z.string(), status: z.enum(openDeliveryStatuses) })
  .meta({ id: 'OpenDelivery' })

interface AcknowledgeDeps {
  acknowledge: Acknowledge
  documents: Pick<Documents, 'find'>
}

export const acknowledgeEndpoints = ({ acknowledge, documents }: AcknowledgeDeps): Endpoint[] => [
  endpoint({
    method: 'POST',
    path: '/documents/:id/acknowledge',
    level: 'member',
    audit: 'document.acknowledged',
    summary: 'Acknowledge a failed or discarded document',
    description:
      'Marks a failed document that will not be retried, or a discarded one that will not be replayed, so that ' +
      '`GET /documents?status=failed&acknowledged=false` lists only documents that need attention. Bulk retries leave it out. Its deliveries that are still open go on, and `meta.open_deliveries` names them; the content is kept for ' +
      'them. Each change of its status, a retry, and a delivery that fails later end the acknowledgement.',
    params: idParams,
    response: one(document)
      .extend({
        meta: z
          .object({ open_deliveries: z.array(openDelivery).describe('The deliveries that are still to be made.') })
          .meta({ id: 'AcknowledgedDocumentMeta' })
          .optional()
          .describe('Present if deliveries are still open.'),
      })
      .meta({ id: 'AcknowledgedDocumentResponse' }),
    conflict: 'The document has not failed, and was not discarded.',
    handle: async ({ params: { id } }, { workspaceId, actor }) => {
      await acknowledge(workspaceId, id, actorOf(actor))
      const found = await documents.find(workspaceId, id)
      const openDeliveries = openOf(found.deliveries).map(({ destinationId, destinationName, status }) => ({
        destinationId,
        destinationName,
        status,
      }))
      return { data: presentDocument(found), ...(openDeliveries.length > 0 && { meta: { openDeliveries } }) }
    },
  }),
]

interface ErasureDeps extends Pick<LaunchDeps, 'launch'>, Pick<DocumentDeps, 'contents'> {
  erase: Erase
}

export const erasureEndpoints = ({ erase, launch, contents }: ErasureDeps): Endpoint[] => [
  endpoint({
    method: 'DELETE',
    path: '/documents/:id/content',
    level: 'admin',
    audit: 'document.erased',
    summary: 'Erase the content of a document',
    description:
      'Removes the bytes of the document and the captured bodies of every request about its `doc_id`. Deliveries that have not been made ' +
      'are cancelled, and download links end. The document stays in the lists with `content_retained` false. Irreversible.',
    params: idParams,
    response: 'none',
    conflict: 'The document is on legal hold.',
    handle: async ({ params: { id } }, { workspaceId, actor, elsewhere }) => {
      const erased = await erase(workspaceId, id, actorOf(actor))
      launch(erased.messages)
      // The job remove-orphans removes what cannot be removed now.
      const signal = discardSignal()
      for (const [store, own] of Map.groupBy(erased.contents, (content) => content.store)) {
        const ids = own.map(({ id: contentId }) => contentId)
        await elsewhere(async () => contents[store]?.remove(ids, signal).catch(() => {}))
      }
    },
  }),
]
