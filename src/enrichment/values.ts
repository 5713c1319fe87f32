import type { BusinessMetadata } from '../domain/template.ts'

/** What is known of a document before any call. */
export interface KnownDocument extends BusinessMetadata {
  docId: string
  repoId: string
  compId: string
  receivedAt: Date
}

/** Returns the values of the placeholders of a document. */
export const valuesOf = (
  { docId, repoId, compId, receivedAt, erpObjectType, erpObjectId, arObject }: KnownDocument,
  fields: Record<string, string>,
): Record<string, string> => ({
  ...fields,
  doc_id: docId,
  repo_id: repoId,
  comp_id: compId,
  received_date: receivedAt.toISOString().slice(0, 10),
  ...(erpObjectType !== null && { erp_object_type: erpObjectType }),
  ...(erpObjectId !== null && { erp_object_id: erpObjectId }),
  ...(arObject !== null && { ar_object: arObject }),
})
