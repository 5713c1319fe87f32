import { z } from 'zod'
import { validationFailed } from '../base/refusals.ts'
import { tiers } from '../domain/bounds.ts'
import type { CamelCasedOutput } from '../domain/casing.ts'
import { auditDaysOf, changeSettings, settingsPatchFields, workspaceSettings, workspaceSettingsFields } from '../domain/settings.ts'
import { rfcCredentialsOf, type KeyRing } from '../security/seal.ts'
import { actorOf } from '../workspace/authenticator.ts'
import type { SettingsChange, StoredSettings, Workspaces } from '../workspace/workspaces.ts'
import { endpoint, type Endpoint } from './endpoint.ts'
import { one, resource } from './schemas.ts'

const attributes = workspaceSettingsFields.extend({
  tier: z
    .enum(tiers)
    .meta({ id: 'Tier' })
    .describe('The compliance tier keeps the audit log indefinitely. The operator of the relay sets the tier.'),
})
const response = one(resource('settings', attributes).meta({ id: 'Settings' }))

const present = (workspaceId: string, { tier, settings: stored }: StoredSettings) => {
  const settings = workspaceSettings(stored)
  return { data: { id: workspaceId, type: 'settings' as const, attributes: { ...settings, auditDays: auditDaysOf(settings, tier), tier } } }
}

const version = ({ data }: { data: { attributes: object } }) => data.attributes

/** Returns what a change of the settings writes. @throws AppError 422 if the settings would be invalid */
export const settingsChange = (
  workspaceId: string,
  { settings, tier }: StoredSettings,
  patch: CamelCasedOutput<typeof settingsPatchFields>,
  keyRing: KeyRing,
): SettingsChange => {
  const changed = changeSettings(settings, patch, tier)
  if (changed.issues.length > 0) throw validationFailed(changed.issues)
  const credentials = patch.rfc?.credentials
  const rfcCredentialsSealed = patch.rfc === null ? null : credentials && keyRing.seal(credentials, rfcCredentialsOf(workspaceId))
  return { settings: changed.stored, difference: changed.difference, rfcCredentialsSealed }
}

export interface SettingsDeps {
  workspaces: Pick<Workspaces, 'findSettings' | 'updateSettings'>
  keyRing: KeyRing
}

export const settingsEndpoints = ({ workspaces, keyRing }: SettingsDeps): Endpoint[] => {
  return [
    endpoint({
      method: 'GET',
      path: '/settings',
      level: 'viewer',
      summary: 'Retrieve the workspace settings',
      description: 'Returns the effective settings, including defaults.',
      response,
      version,
      status: 200,
      handle: async (_, { workspaceId }) => present(workspaceId, await workspaces.findSettings(workspaceId)),
    }),

    endpoint({
      method: 'PATCH',
      path: '/settings',
      level: 'admin',
      audit: 'settings.updated',
      summary: 'Update the workspace settings',
      description: 'Omitted settings are not changed.',
      body: settingsPatchFields,
      response,
      version,
      status: 200,
      checksVersion: true,
      handle: async ({ body }, { workspaceId, actor, checkVersion }) => {
        const change = (stored: StoredSettings) => {
          checkVersion(version(present(workspaceId, stored)))
          return settingsChange(workspaceId, stored, body, keyRing)
        }
        return present(workspaceId, await workspaces.updateSettings(workspaceId, change, actorOf(actor)))
      },
    }),
  ]
}
