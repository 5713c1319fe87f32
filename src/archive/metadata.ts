import { record, type AuditActor } from '../db/audit.ts'
import type { Transaction } from '../db/database.ts'
import type { DocumentMetadata } from '../domain/template.ts'

/** The columns of what the source system tells about a document besides its bytes. */
export const metadataColumns = {
  erpObjectType: 'erp_object_type',
  erpObjectId: 'erp_object_id',
  arObject: 'ar_object',
  fileName: 'file_name',
  description: 'description',
} as const satisfies Record<keyof DocumentMetadata, string>

type Columns = { [Field in keyof DocumentMetadata as (typeof metadataColumns)[Field]]: string | null }

export const metadataFields = Object.keys(metadataColumns) as (keyof DocumentMetadata)[]

/** SQL: a `DocumentMetadata`, of `documents`. */
export const metadataSelection = metadataFields.map((field) => `documents.${metadataColumns[field]} as "${field}"`).join(', ')

/** Returns the values by their columns. */
export const columnsOf = (metadata: DocumentMetadata): Columns =>
  Object.fromEntries(metadataFields.map((field) => [metadataColumns[field], metadata[field]])) as Columns

/** Returns what is told now and, of the rest, what was known before. */
export const withMetadata = (told: DocumentMetadata, known: DocumentMetadata): DocumentMetadata =>
  Object.fromEntries(metadataFields.map((field) => [field, told[field] ?? known[field]])) as unknown as DocumentMetadata

/** Changes of the metadata; null removes a value. */
export type MetadataChange = { [Field in keyof DocumentMetadata]?: DocumentMetadata[Field] | undefined }

/** The documents that were received under a docId. */
export interface DocIdOf {
  repoId: string
  docId: string
}

/** The metadata of a docId. */
export interface SetMetadata extends DocumentMetadata {
  /** The number of documents that were received under it. */
  documents: number
}

/** Returns the fields that a change names. */
export const fieldsOf = (change: MetadataChange): (keyof DocumentMetadata)[] =>
  metadataFields.filter((field) => change[field] !== undefined)

/** Returns values of some fields by their columns. */
export const valuesOf = (values: MetadataChange, fields: (keyof DocumentMetadata)[]): Partial<Columns> =>
  Object.fromEntries(fields.map((field) => [metadataColumns[field], values[field]]))

// An erasure removes these values. The audit log must not keep them.
const erased: ReadonlySet<string> = new Set(['fileName', 'description'])

/**
 * Sets the metadata of a docId on every document received under it: on all components, and on documents that an update has replaced, since
 * these were delivered too. Locks them in the order of their ids. Records one audit entry, about the newest document, if a value changes.
 * @returns undefined if there is none; else the values of the newest, and the documents that have changed
 */
export const setMetadata = async (
  trx: Transaction,
  workspaceId: string,
  { repoId, docId }: DocIdOf,
  change: MetadataChange,
  actor: AuditActor,
): Promise<(SetMetadata & { changedIds: string[] }) | undefined> => {
  const current: (DocumentMetadata & { id: string })[] = await trx('documents')
    .select('id', trx.raw(metadataSelection))
    .where({ workspace_id: workspaceId, repo_id: repoId, doc_id: docId })
    .orderBy('id')
    .forNoKeyUpdate()
  const newest = current.at(-1)
  if (!newest) return undefined
  const fields = fieldsOf(change)
  const changedIds = current.filter((row) => fields.some((field) => row[field] !== change[field])).map(({ id }) => id)
  if (changedIds.length > 0) {
    await trx('documents').whereIn('id', changedIds).update(valuesOf(change, fields))
    const kept = fields.filter((field) => !erased.has(field))
    await record(trx, {
      workspaceId,
      event: 'document.metadata_updated',
      subjectId: newest.id,
      description: `The metadata of document ${repoId}/${docId} was changed: ${fields.map((field) => metadataColumns[field]).join(', ')}.`,
      metadata: {
        repo_id: repoId,
        doc_id: docId,
        documents: changedIds.length,
        before: valuesOf(newest, kept),
        after: valuesOf(change, kept),
      },
      actor,
    })
  }
  const { id: _, ...known } = newest
  const given = Object.fromEntries(fields.map((field) => [field, change[field]]))
  return { ...known, ...given, documents: current.length, changedIds }
}

/**
 * Sets the metadata of a docId, and what follows from that.
 * @param unknown whether to keep the metadata of a docId under which no document was received
 * @throws `AppError` 404 if no document was received under it, and the metadata is not kept, or there is no such repository
 */
export type SetMetadataOf = (
  workspaceId: string,
  document: DocIdOf,
  change: MetadataChange,
  actor: AuditActor,
  unknown?: 'keep' | 'refuse',
) => Promise<SetMetadata>
