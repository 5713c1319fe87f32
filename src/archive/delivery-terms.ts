import type { DeliveryInput } from '../../workflows/messages.ts'
import type { Config } from '../config/config.ts'
import type { Transaction } from '../db/database.ts'
import { retryPolicyOf, workspaceSettings, type WorkspaceSettings } from '../domain/settings.ts'

export type DeliveryTermsConfig = Pick<Config, 'DELIVERY_RETRY_WINDOW_MS' | 'DELIVERY_ATTEMPT_TIMEOUT_MS' | 'DELIVERY_HEARTBEAT_TIMEOUT_MS'>

/** The terms of a delivery that are pinned when its workflow starts: later changes of the settings do not affect it. */
export type DeliveryTerms = Pick<DeliveryInput, 'workspace' | 'policy' | 'retryWindowMs' | 'attemptTimeoutMs' | 'heartbeatTimeoutMs'>

/** Returns `{ traceparent }` as the workflows of a document have it, or nothing if its request was not traced. */
export const traceOf = ({ traceparent }: { traceparent: string | null }): { traceparent?: string } =>
  traceparent === null ? {} : { traceparent }

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

/** Returns the terms under the workspace's current settings. */
export const currentDeliveryTerms = async (trx: Transaction, workspaceId: string, config: DeliveryTermsConfig): Promise<DeliveryTerms> => {
  const { settings, ...slugs }: { userSlug: string; workspaceSlug: string; settings: unknown } = await trx('workspaces')
    .select('user_slug as userSlug', 'workspace_slug as workspaceSlug', 'settings')
    .where({ id: workspaceId })
    .first()
  return deliveryTerms({ ...slugs, settings: workspaceSettings(settings) }, config)
}
