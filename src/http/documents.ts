import { z } from 'zod'
import type { ContentStore } from '../content/store.ts'
import type { Database } from '../db/database.ts'
import { createDocuments, type Document, type DocumentContent } from '../db/documents.ts'
import { deliveryStatuses, documentStatuses } from '../domain/status.ts'
import { AppError } from '../errors.ts'
import { isStorable } from './body.ts'
import type { Download } from './bytes.ts'
import { endpoint, type Endpoint } from './endpoint.ts'
import { invalidRequest, notFound } from './faults.ts'
import { dateFrom, dateTo, idParams, one, pageOfMany, pageQuery, resource, timestamp, toPage } from './schemas.ts'

const listable = z.enum(documentStatuses).exclude(['discarded'])

const delivery = z.object({
  destination_id: z.string(),
  destination_name: z.string(),
  status: z.enum(deliveryStatuses),
  delivered_at: timestamp.nullable(),
  attempts: z.int(),
})

export const documentAttributes = z.object({
  doc_id: z.string(),
  repo_id: z.string(),
  comp_id: z.string(),
  content_type: z.string(),
  size_bytes: z.int(),
  status: z.enum(documentStatuses),
  received_at: timestamp,
  deliveries: z.array(delivery),
})

const document = resource('document', documentAttributes).meta({ id: 'Document' })
const metadata = z.object({
  erp_object_type: z.string().nullable(),
  erp_object_id: z.string().nullable(),
  ar_object: z.string().nullable(),
})
const singleDocument = resource(
  'document',
  documentAttributes.extend({
    metadata,
    deliveries: z.array(delivery.extend({ path: z.string().describe('Where the document lies at the destination') })),
  }),
).meta({ id: 'SingleDocument' })

// a name in a path that PostgreSQL can look up
const storable = z.string().refine(isStorable)

const metadataMaxCharacters = 255
const metadataValue = z.string().min(1).max(metadataMaxCharacters).nullable().optional()
const metadataFields = ['erp_object_type', 'erp_object_id', 'ar_object'] as const

export const presentDocument = ({ id, erpObjectType, erpObjectId, arObject, ...rest }: Document) => ({
  id,
  type: 'document' as const,
  attributes: { ...rest, metadata: { erpObjectType, erpObjectId, arObject } },
})

export interface DocumentDeps {
  db: Database
  contents: Record<DocumentContent['content']['store'], ContentStore | undefined>
}

/** @throws AppError 503 where the bytes lie out of this process's reach */
export const downloadOf = (contents: DocumentDeps['contents'], { content, contentType }: DocumentContent, fileName: string): Download => {
  const store = contents[content.store]
  if (!store) throw new AppError('unavailable', `The bytes lie in the ${content.store} store, which this process has no access to.`)
  return { contentType, fileName, sizeBytes: content.sizeBytes, open: () => store.read(content) }
}

export const documentEndpoints = ({ db, contents }: DocumentDeps): Endpoint[] => {
  const documents = createDocuments(db)
  return [
    endpoint({
      method: 'GET',
      path: '/documents',
      level: 'viewer',
      summary: 'The documents of the workspace, newest first',
      query: pageQuery.extend({
        repo_id: z.string().optional().describe('Of the repository that the source system calls so'),
        status: listable.optional().describe('In this state only'),
        date_from: dateFrom,
        date_to: dateTo,
      }),
      response: pageOfMany(document),
      status: 200,
      handle: async ({ query }, { workspaceId }) => toPage(await documents.list(workspaceId, query), query, presentDocument),
    }),

    endpoint({
      method: 'GET',
      path: '/documents/:id',
      level: 'viewer',
      summary: 'One document, with its metadata and where it lies at each destination',
      params: idParams,
      response: one(singleDocument),
      status: 200,
      handle: async ({ params }, { workspaceId }) => {
        const found = await documents.find(workspaceId, params.id)
        if (!found) throw notFound()
        return { data: presentDocument(found) }
      },
    }),

    endpoint({
      method: 'GET',
      path: '/documents/:id/content',
      level: 'viewer',
      summary: 'The bytes of a document as they were received; a discarded document has none',
      params: idParams,
      response: 'bytes',
      status: 200,
      handle: async ({ params }, { workspaceId }) => {
        const found = await documents.findContent(workspaceId, params.id)
        if (!found) throw notFound()
        return downloadOf(contents, found, found.compId)
      },
    }),

    endpoint({
      method: 'PUT',
      path: '/documents/by-doc-id/:repo_id/:doc_id/metadata',
      level: 'member',
      summary: 'Tells what a docId is about: sets the given values on all documents that were received under it',
      params: z.object({
        repo_id: storable.describe("The source's repository identifier"),
        doc_id: storable.describe('What the source system calls the document'),
      }),
      body: z.strictObject({
        erp_object_type: metadataValue.describe('The kind of business object, like `BKPF`; null takes it back'),
        erp_object_id: metadataValue.describe('Which one of that kind'),
        ar_object: metadataValue.describe('The document type of the source system'),
      }),
      response: one(z.object({ repo_id: z.string(), doc_id: z.string(), documents: z.int(), metadata })),
      status: 200,
      handle: async ({ params, body }, { workspaceId }) => {
        if (Object.values(body).every((value) => value === undefined)) {
          throw invalidRequest('body', [
            { code: 'custom', path: [], message: `must have one of ${metadataFields.join(', ')}`, input: body },
          ])
        }
        const set = await documents.setMetadata(workspaceId, params, body)
        if (!set) throw notFound()
        const { documents: count, erpObjectType, erpObjectId, arObject } = set
        return { data: { ...params, documents: count, metadata: { erpObjectType, erpObjectId, arObject } } }
      },
    }),
  ]
}
