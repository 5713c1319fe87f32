import type { Database } from '../db/database.ts'
import { createWorkspaces, type StoredSettings } from '../db/workspaces.ts'
import { changeSettings, settingsPatchFields, workspaceSettings, workspaceSettingsFields } from '../domain/settings.ts'
import { rfcCredentialsOf, type KeyRing } from '../security/seal.ts'
import { endpoint, type Endpoint } from './endpoint.ts'
import { validationFailed } from './faults.ts'
import { one, resource } from './schemas.ts'

const response = one(resource('settings', workspaceSettingsFields).meta({ id: 'Settings' }))

const present = (workspaceId: string, { settings }: StoredSettings) => ({
  data: { id: workspaceId, type: 'settings' as const, attributes: workspaceSettings(settings) },
})

export const settingsEndpoints = ({ db, keyRing }: { db: Database; keyRing: KeyRing }): Endpoint[] => {
  const workspaces = createWorkspaces(db)
  return [
    endpoint({
      method: 'GET',
      path: '/settings',
      level: 'viewer',
      summary: 'The settings of the workspace, defaults included',
      response,
      status: 200,
      handle: async (_, { workspaceId }) => present(workspaceId, await workspaces.findSettings(workspaceId)),
    }),

    endpoint({
      method: 'PATCH',
      path: '/settings',
      level: 'admin',
      summary: 'Changes settings; those not given stay',
      body: settingsPatchFields,
      response,
      status: 200,
      handle: async ({ body }, { workspaceId }) => {
        const stored = await workspaces.updateSettings(workspaceId, ({ settings, complianceTier }) => {
          const changed = changeSettings(settings, body, { complianceTier })
          if (changed.faults.length > 0) throw validationFailed(changed.faults)
          const credentials = body.rfc?.credentials
          const rfcCredentialsSealed = body.rfc === null ? null : credentials && keyRing.seal(credentials, rfcCredentialsOf(workspaceId))
          return { settings: changed.stored, rfcCredentialsSealed }
        })
        return present(workspaceId, stored)
      },
    }),
  ]
}
