import { deliveryWorkflowId } from '../../workflows/ids.ts'
import type { FindConditions } from './condition.ts'
import { documentColumn, noticeDocument, type IncidentDocument } from './incident-document.ts'

const remedy =
  'Bring the document back at the destination as it was delivered, from a version or a backup there: the relay does not have it any more. The relay ' +
  'reads it again every ten minutes. If it is lost, erase the content of the document.'

interface Row {
  workspaceId: string
  workspace: string
  destination: { id: string; name: string; type: string }
  count: number
  since: Date
  error: string
  document: IncidentDocument
}

/** Finds homes that do not have contents any more, or have other bytes. */
export const findAlteredContents: FindConditions = async (trx, config) => {
  const { rows } = await trx.raw<{ rows: Row[] }>(
    `
    select
      destinations.workspace_id as "workspaceId", user_slug || '/' || workspace_slug as workspace, altered.count, altered.since,
      last_error as error, ${documentColumn},
      jsonb_build_object('id', destinations.id, 'name', destinations.name, 'type', connector_type) as destination
    from destinations
    join workspaces on workspaces.id = destinations.workspace_id
    join lateral (
      select count(*) as count, min(altered_since) as since, max(content_id) as content_id
      from (
        select home_contents.content_id, altered_since
        from home_contents
        join documents on documents.id = home_contents.document_id and documents.content_id = home_contents.content_id
        where destination_id = destinations.id
          and altered_since is not null
        limit :maxCount
      ) as first
    ) as altered on altered.count > 0
    cross join lateral (
      select last_error, documents.*
      from home_contents
      join documents on documents.id = document_id
      where home_contents.content_id = altered.content_id
      -- One row, so that no plan reads all documents.
      limit 1
    ) as documents
    where destinations.workspace_id = any (:workspaceIds)
      and deleted_at is null
    `,
    { maxCount: config.maxCount, workspaceIds: config.workspaceIds },
  )
  return rows.map(({ workspaceId, workspace, destination, count, since, error, document }) => ({
    workspaceId,
    subject: destination.id,
    count,
    since,
    details: {
      destination,
      remedy,
      error: { code: 'content_altered', message: error },
      document: noticeDocument(
        document,
        workspace,
        deliveryWorkflowId({ ...document, documentId: document.id, workspace }, destination.id),
        config,
      ),
    },
  }))
}
