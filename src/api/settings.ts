import { z } from 'zod'
import { actorOf } from '../db/audit.ts'
import { tiers } from '../domain/bounds.ts'
import { auditDaysOf, settingsPatchFields, workspaceSettings, workspaceSettingsFields } from '../domain/settings.ts'
import { requireEncryptedBridge, type ProbeDeps } from '../routing/targets.ts'
import type { KeyRing } from '../security/seal.ts'
import { settingsChange, type StoredSettings, type Workspaces } from '../workspace/workspaces.ts'
import { endpoint, type Endpoint } from './endpoint.ts'
import { one, resource } from './schemas.ts'

const attributes = workspaceSettingsFields.extend({
  tier: z
    .enum(tiers)
    .meta({ id: 'Tier' })
    .describe('The compliance tier keeps the audit log indefinitely. The operator of the relay sets the tier.'),
})
const response = one(resource('Settings', 'settings', attributes))

const present = (workspaceId: string, { tier, settings: stored }: StoredSettings) => {
  const settings = workspaceSettings(stored)
  return { data: { id: workspaceId, type: 'settings' as const, attributes: { ...settings, auditDays: auditDaysOf(settings, tier), tier } } }
}

const version = ({ data }: { data: { attributes: object } }) => data.attributes

interface SettingsDeps extends Pick<ProbeDeps, 'outbound' | 'config'> {
  workspaces: Pick<Workspaces, 'findSettings' | 'updateSettings'>
  keyRing: KeyRing
}

export const settingsEndpoints = ({ workspaces, keyRing, outbound, config }: SettingsDeps): Endpoint[] => {
  return [
    endpoint({
      method: 'GET',
      path: '/settings',
      level: 'viewer',
      summary: 'Retrieve the workspace settings',
      description: 'Returns the effective settings, including defaults.',
      response,
      version,
      handle: async (_, { workspaceId }) => present(workspaceId, await workspaces.findSettings(workspaceId)),
    }),

    endpoint({
      method: 'PATCH',
      path: '/settings',
      level: 'admin',
      audit: 'settings.updated',
      summary: 'Update the workspace settings',
      description: 'Omitted settings are not changed.',
      body: settingsPatchFields.meta({ id: 'SettingsChange' }),
      response,
      version,
      checksVersion: true,
      handle: async ({ body }, { workspaceId, actor, checkVersion }) => {
        await requireEncryptedBridge({ outbound, config }, body.rfc?.url)
        const change = (stored: StoredSettings) => {
          checkVersion(version(present(workspaceId, stored)))
          return settingsChange(workspaceId, stored, body, keyRing)
        }
        return present(workspaceId, await workspaces.updateSettings(workspaceId, change, actorOf(actor)))
      },
    }),
  ]
}
