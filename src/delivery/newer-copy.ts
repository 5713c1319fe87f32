import { placeOf } from '../archive/place.ts'

const at = (table: string, document: string) =>
  placeOf({ kind: 'connector_type', path: `${table}.path`, docId: `${document}.doc_id`, compId: `${document}.comp_id` })

/**
 * SQL: joins to `documents` and `deliveries` the `newer` documents and their deliveries (`replacing`) to the same place of the destination, whose
 * `connector_type` must be known. The index documents_by_doc_id finds them.
 */
export const newerCopies = {
  tables: 'documents as newer join deliveries as replacing on replacing.document_id = newer.id',
  condition: `newer.workspace_id = documents.workspace_id
          and newer.repo_id = documents.repo_id
          and newer.doc_id = documents.doc_id
          and newer.id > documents.id
          and replacing.destination_id = deliveries.destination_id
          and ${at('replacing', 'newer')} = ${at('deliveries', 'documents')}`,
}

/**
 * SQL: true if a newer document has a delivery to the same place.
 * @param condition on that delivery, which is called `replacing`
 */
export const hasNewerCopy = (condition = '') => `exists (
        select
        from ${newerCopies.tables}
        where ${newerCopies.condition}
          ${condition}
      )`

/**
 * SQL: the place, if the destination `:destinationId` alone has the content of a document other than `:documentId` there, or null. The index
 * home_contents_by_path finds it.
 * @param place an expression
 */
export const replacedAtHome = (place: string) => `case when exists (
      select
      from home_contents
      join documents on documents.id = home_contents.document_id and documents.content_id = home_contents.content_id
      where home_contents.destination_id = :destinationId
        and folded_place(home_contents.path) = folded_place(${place})
        and home_contents.document_id <> :documentId
    ) then ${place} end`
