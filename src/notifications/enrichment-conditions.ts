import { documentWorkflowId } from '../../workflows/ids.ts'
import { latestEnriched } from '../enrichment/failing.ts'
import type { FindConditions } from './condition.ts'
import { documentColumn, noticeDocument, type IncidentDocument } from './incident-document.ts'

const remedy =
  'Check that the source system runs and that the relay may sign in and call it; the page of the enrichment tries it on a document. ' +
  'The documents were delivered with what is known.'

interface Row {
  workspaceId: string
  workspace: string
  enrichment: { id: string; name: string }
  document: IncidentDocument
  error: string | null
  count: number
  since: Date
}

/** Finds active enrichments that have missed the latest documents of theirs. */
export const findFailingEnrichments: FindConditions = async (trx, config) => {
  const { rows } = await trx.raw<{ rows: Row[] }>(
    `
    select
      enrichments.workspace_id as "workspaceId", user_slug || '/' || workspace_slug as workspace,
      jsonb_build_object('id', enrichments.id, 'name', enrichments.name) as enrichment,
      ${documentColumn},
      (
        select concat_ws(': ', step ->> 'name', step ->> 'error')
        from jsonb_array_elements(missed.steps) as step
        where step ->> 'status' <> 'done'
        limit 1
      ) as error,
      missed.count, (select received_at from documents where documents.id = missed.first_id) as since
    from enrichments
    join workspaces on workspaces.id = enrichments.workspace_id
    cross join lateral (
      select
        count(*) as count, bool_and(is_missed) as is_failing,
        min(document_id) as first_id, max(document_id) as document_id,
        (array_agg(steps order by document_id desc))[1] as steps
      from (${latestEnriched('enrichments.id')}) as latest
    ) as missed
    join documents on documents.id = missed.document_id
    where enrichments.workspace_id = any (:workspaceIds)
      and is_active
      and missed.is_failing
    `,
    { workspaceIds: config.workspaceIds },
  )
  return rows.map(({ workspaceId, workspace, enrichment, document, error, count, since }) => ({
    workspaceId,
    subject: enrichment.id,
    count,
    since,
    details: {
      enrichment,
      ...(error !== null && { error: { message: error } }),
      document: noticeDocument(document, workspace, documentWorkflowId({ ...document, documentId: document.id, workspace }), config),
      remedy,
    },
  }))
}
