import { z } from 'zod'
import { documentAttributes, enrichmentOfDocument, holdOfDocument, singleDelivery } from '../archive/document-fields.ts'
import type { Document, Documents } from '../archive/document-list.ts'
import { resource } from './schemas.ts'

export const metadata = z
  .object({
    erp_object_type: z.string().nullable(),
    erp_object_id: z.string().nullable(),
    ar_object: z.string().nullable(),
  })
  .meta({ id: 'DocumentMetadata' })
export const document = resource(
  'Document',
  'document',
  documentAttributes.extend({ metadata: metadata.optional().describe('The business object, if `include` asks for it.') }),
)
export const singleDocument = resource(
  'SingleDocument',
  'document',
  documentAttributes.extend({
    metadata,
    fields: z
      .record(z.string(), z.string())
      .describe(
        'The business data that was found, by the names of the fields. Of enrichments with a field of the same name, that of the oldest counts.',
      ),
    enrichments: z
      .array(enrichmentOfDocument)
      .describe('How far the enrichments of the document are, in the order in which they were created. Empty if it has none.'),
    legal_holds: z.array(holdOfDocument).describe('The holds that apply to the document.'),
    deliveries: z.array(singleDelivery),
  }),
)

/** Presents a document as lists do: with its business object only if the request asks for it. */
export const presentListed = (include: 'metadata' | undefined) => (row: Document) => {
  const { attributes, ...rest } = presentDocument(row)
  const { metadata: object, ...listed } = attributes
  return { ...rest, attributes: include === 'metadata' ? { ...listed, metadata: object } : listed }
}

export const presentDocument = ({ id, erpObjectType, erpObjectId, arObject, ...rest }: Document) => ({
  id,
  type: 'document' as const,
  attributes: { ...rest, metadata: { erpObjectType, erpObjectId, arObject } },
})

export const presentSingle = ({ enrichments, fields, legalHolds, ...row }: Awaited<ReturnType<Documents['find']>>) => {
  const { attributes, ...rest } = presentDocument(row)
  const { deliveries } = row
  return { ...rest, attributes: { ...attributes, deliveries, fields, enrichments, legalHolds } }
}
