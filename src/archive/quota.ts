import type { Config } from '../config/config.ts'
import type { ReceivingRepository } from './receiving-repository.ts'

/** How many bytes a workspace may store. */
export interface Quota {
  maxBytes: number
  storedBytes: number
}

/** Combines the limit of a workspace with that of the installation, of which 0 means none. */
export const lowestLimit = (workspaceLimit: number | null, installationLimit: number): number =>
  Math.min(workspaceLimit ?? Infinity, installationLimit || Infinity)

export const quotaOf = ({ workspace }: ReceivingRepository, config: Pick<Config, 'RELAY_WORKSPACE_MAX_BYTES'>): Quota => ({
  maxBytes: lowestLimit(workspace.settings.receiverMaxBytes, config.RELAY_WORKSPACE_MAX_BYTES),
  storedBytes: workspace.storedBytes,
})
