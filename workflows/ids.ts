// Workflow ids are business keys: a second start of the same work is refused, and operators recognise a workflow by its id.

/** Returns the task queue of the activities that call no target. */
export const controlQueueOf = (taskQueue: string): string => `${taskQueue}-control`

/** Returns the task queue of the copies from old content servers, which must not take the places of deliveries. */
export const migrationQueueOf = (taskQueue: string): string => `${taskQueue}-migration`

/** Returns the task queue of side work, whose systems that hang must not take the places of deliveries. */
export const sideQueueOf = (taskQueue: string): string => `${taskQueue}-side`

/** The names by which people know a document, and its id. */
export interface DocumentKey {
  documentId: string
  /** `{userSlug}/{workspaceSlug}` */
  workspace: string
  repoId: string
  docId: string
  compId: string
}

// Temporal accepts ids of at most 1,000 bytes. A component name has at most 255 bytes, but 765 once each character is encoded. With an
// encoded name cut to this length, an id has at most 768 bytes. Cutting is safe, because the id of the document makes the whole unique.
const compIdMaxCharacters = 200

/** Encodes a name as one segment of an id. */
const segment = (name: string): string => name.replaceAll(/[%/\p{Cc}\p{Cf}]/gu, (character) => encodeURIComponent(character))

const documentPath = ({ workspace, repoId, docId, compId, documentId }: DocumentKey) =>
  `document/${workspace}/${segment(repoId)}/${docId}/${segment(compId).slice(0, compIdMaxCharacters).toWellFormed()}/${documentId}`

/**
 * `document/acme/invoices/Z1/4711/data/<document id>`
 * @param revision above 1 if the document is delivered again; every revision has a workflow of its own
 */
export const documentWorkflowId = (document: DocumentKey, revision = 1): string =>
  revision === 1 ? documentPath(document) : `${documentPath(document)}@${revision}`

/** `document/acme/invoices/Z1/4711/data/<document id>/<destination id>`, for every revision of the document. */
export const deliveryWorkflowId = (document: DocumentKey, destinationId: string): string => `${documentPath(document)}/${destinationId}`

/** Returns the id of the workflow of the document that a delivery belongs to. */
export const documentOfDelivery = (workflowId: string, revision = 1): string => {
  const path = workflowId.slice(0, workflowId.lastIndexOf('/'))
  return revision === 1 ? path : `${path}@${revision}`
}

/** `release-deliveries/acme/invoices/<connection id>`; `cancel-deliveries/` and `attempt-deliveries/` may have the id of a destination instead */
export const batchWorkflowId = ({
  action,
  workspace,
  id,
}: {
  action: 'release' | 'cancel' | 'attempt'
  workspace: string
  id: string
}): string => `${action}-deliveries/${workspace}/${id}`

/** `notice/acme/invoices/<notice id>` */
export const noticeWorkflowId = ({ workspace, noticeId }: { workspace: string; noticeId: string }): string =>
  `notice/${workspace}/${noticeId}`

/** `event-subscription/acme/invoices/<subscription id>`; `enrichment/` and `late-data/` alike, with the id of an enrichment or a destination */
export const sideWorkflowId = (name: string, { workspace, queueId }: { workspace: string; queueId: string }): string =>
  `${name}/${workspace}/${queueId}`

/** `bulk-retry/acme/invoices/<bulk retry id>` */
export const bulkRetryWorkflowId = ({ workspace, bulkRetryId }: { workspace: string; bulkRetryId: string }): string =>
  `bulk-retry/${workspace}/${bulkRetryId}`

/** `document-migration/acme/invoices/<migration id>` */
export const documentMigrationWorkflowId = ({
  workspace,
  documentMigrationId,
}: {
  workspace: string
  documentMigrationId: string
}): string => `document-migration/${workspace}/${documentMigrationId}`
