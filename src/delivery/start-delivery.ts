import type { DeliveryInput, DestinationRef } from '../../workflows/messages.ts'
import { deliveryTerms, traceOf, type DeliveryTermsConfig } from '../archive/delivery-terms.ts'
import { businessObjectOf, type BusinessMetadata } from '../domain/business-object.ts'
import { workspaceSettings } from '../domain/settings.ts'

/** Columns of a delivery and of its document that the input of its workflow is made of. */
export interface StartableDelivery extends Pick<BusinessMetadata, 'erpObjectType' | 'erpObjectId'> {
  documentId: string
  repoId: string
  docId: string
  compId: string
  revision: number
  destination: DestinationRef
  traceparent: string | null
  workspace: { userSlug: string; workspaceSlug: string; settings: unknown }
}

/** SQL: the columns of a `StartableDelivery`, of `documents`, `destinations` and `workspaces`. */
export const startableColumns = `
      documents.id as "documentId", repo_id as "repoId", doc_id as "docId", comp_id as "compId", revision,
      erp_object_type as "erpObjectType", erp_object_id as "erpObjectId", traceparent,
      jsonb_build_object('id', destinations.id, 'name', destinations.name, 'connector', connector_type) as destination,
      jsonb_build_object('userSlug', user_slug, 'workspaceSlug', workspace_slug, 'settings', workspaces.settings) as workspace`

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
  const terms = deliveryTerms({ ...workspace, settings: workspaceSettings(workspace.settings) }, config)
  return { ...delivery, ...businessObjectOf({ erpObjectType, erpObjectId }), ...traceOf({ traceparent }), ...terms }
}
