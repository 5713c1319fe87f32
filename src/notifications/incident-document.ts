import { consoleUrlOf } from '../base/console-url.ts'
import { businessObjectText } from '../domain/business-object.ts'
import type { ConditionConfig, IncidentDetails } from './condition.ts'

/** A document that an incident concerns, as `documentColumn` reads it. */
export interface IncidentDocument {
  id: string
  repoId: string
  docId: string
  compId: string
  objectType: string | null
  objectKey: string | null
}

/** SQL: the document of a row, for the details of an incident. */
export const documentColumn = `
  case when documents.id is not null then jsonb_build_object(
    'id', documents.id, 'repoId', documents.repo_id, 'docId', documents.doc_id, 'compId', documents.comp_id,
    'objectType', documents.erp_object_type, 'objectKey', documents.erp_object_id) end as document
`

const workflowUrlOf = ({ TEMPORAL_UI_URL: url, temporal }: ConditionConfig, workflowId: string) =>
  url && `${url.replace(/\/+$/, '')}/namespaces/${temporal.namespace ?? 'default'}/workflows/${encodeURIComponent(workflowId)}`

/** Returns the document as a notice has it. @param workspace `{userSlug}/{workspaceSlug}` */
export const noticeDocument = (
  { objectType, objectKey, ...document }: IncidentDocument,
  workspace: string,
  workflowId: string,
  config: ConditionConfig,
): NonNullable<IncidentDetails['document']> => {
  const businessObject = businessObjectText({ type: objectType, key: objectKey }, 'en')
  return {
    ...document,
    ...(businessObject !== undefined && { businessObject }),
    consoleUrl: consoleUrlOf(config.RELAY_BASE_URL, `documents/${document.id}`, workspace),
    workflowId,
    workflowUrl: workflowUrlOf(config, workflowId),
  }
}
