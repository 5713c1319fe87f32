import type { DeliveryInput, DestinationRef } from '../../workflows/messages.ts'
import type { Config } from '../config/config.ts'
import { retryPolicyOf, workspaceSettings, type WorkspaceSettings } from '../domain/settings.ts'
import type { BusinessMetadata } from '../domain/template.ts'

// What the workflows of a document and of its deliveries are given. It is pinned when they start.

export type DeliveryTermsConfig = Pick<Config, 'DELIVERY_RETRY_WINDOW_MS' | 'DELIVERY_ATTEMPT_TIMEOUT_MS' | 'DELIVERY_HEARTBEAT_TIMEOUT_MS'>

/** The terms of a delivery: later changes of the settings do not affect it. */
type DeliveryTerms = Pick<DeliveryInput, 'workspace' | 'policy' | 'retryWindowMs' | 'attemptTimeoutMs' | 'heartbeatTimeoutMs'>

interface WorkspaceFacts {
  userSlug: string
  workspaceSlug: string
  settings: WorkspaceSettings
}

export const deliveryTerms = ({ userSlug, workspaceSlug, settings }: WorkspaceFacts, config: DeliveryTermsConfig): DeliveryTerms => ({
  workspace: `${userSlug}/${workspaceSlug}`,
  policy: retryPolicyOf(settings),
  retryWindowMs: config.DELIVERY_RETRY_WINDOW_MS,
  attemptTimeoutMs: config.DELIVERY_ATTEMPT_TIMEOUT_MS,
  heartbeatTimeoutMs: config.DELIVERY_HEARTBEAT_TIMEOUT_MS,
})

/** Returns `{ traceparent }` as the workflows of a document have it, or nothing if its request was not traced. */
export const traceOf = ({ traceparent }: { traceparent: string | null }): { traceparent?: string } =>
  traceparent === null ? {} : { traceparent }

/** Returns `{ businessObject: '{type}/{id}' }` as operators search for it, or nothing if the object is not known. */
export const businessObjectOf = ({
  erpObjectType,
  erpObjectId,
}: Pick<BusinessMetadata, 'erpObjectType' | 'erpObjectId'>): { businessObject?: string } =>
  erpObjectId === null ? {} : { businessObject: erpObjectType === null ? erpObjectId : `${erpObjectType}/${erpObjectId}` }

/** A workspace with its current settings, as `workspaceColumn` reads it. */
interface StoredWorkspace {
  userSlug: string
  workspaceSlug: string
  settings: unknown
}

/** SQL: the column `workspace`, of `workspaces`. */
const workspaceColumn = `
      jsonb_build_object('userSlug', user_slug, 'workspaceSlug', workspace_slug, 'settings', workspaces.settings) as workspace`

/** Returns the terms under the current settings of the workspace. */
const currentTerms = (workspace: StoredWorkspace, config: DeliveryTermsConfig): DeliveryTerms =>
  deliveryTerms({ ...workspace, settings: workspaceSettings(workspace.settings) }, config)

/** Columns of a delivery and of its document that the input of its workflow is made of. */
export interface StartableDelivery extends Pick<BusinessMetadata, 'erpObjectType' | 'erpObjectId'> {
  documentId: string
  repoId: string
  docId: string
  compId: string
  revision: number
  destination: DestinationRef
  traceparent: string | null
  workspace: StoredWorkspace
}

/** SQL: the columns of a `StartableDelivery`, of `documents`, `destinations` and `workspaces`. */
export const startableColumns = `
      documents.id as "documentId", repo_id as "repoId", doc_id as "docId", comp_id as "compId", revision,
      erp_object_type as "erpObjectType", erp_object_id as "erpObjectId", traceparent,
      jsonb_build_object('id', destinations.id, 'name', destinations.name, 'connector', connector_type) as destination,${workspaceColumn}`

/** SQL: the deliveries (document_id, destination_id) of a named part of the statement, as `StartableDelivery`, the oldest document first. */
export const startablesOf = (part: string) => `
    select ${startableColumns}
    from ${part}
    join documents on documents.id = ${part}.document_id
    join workspaces on workspaces.id = documents.workspace_id
    join destinations on destinations.id = ${part}.destination_id
    order by documents.id, destinations.id`

/** Returns the input of the workflow, under the current settings of the workspace. */
export const startInputOf = (startable: StartableDelivery, config: DeliveryTermsConfig): DeliveryInput => {
  const { workspace, erpObjectType, erpObjectId, traceparent, ...delivery } = startable
  return {
    ...delivery,
    ...businessObjectOf({ erpObjectType, erpObjectId }),
    ...traceOf({ traceparent }),
    ...currentTerms(workspace, config),
  }
}
