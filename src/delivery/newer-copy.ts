/**
 * SQL: true if a newer document has a delivery to the same path of the destination. The index documents_by_doc_id finds the newer ones.
 * @param condition on that delivery, which is called `replacing`
 */
export const hasNewerCopy = (condition = '') => `exists (
        select
        from documents as newer
        join deliveries as replacing on replacing.document_id = newer.id
        where newer.workspace_id = documents.workspace_id
          and newer.repo_id = documents.repo_id
          and newer.doc_id = documents.doc_id
          and newer.id > documents.id
          and replacing.destination_id = deliveries.destination_id
          and replacing.path = deliveries.path
          ${condition}
      )`
