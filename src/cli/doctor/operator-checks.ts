import { testOperatorTarget } from '../../app/operator-notices.ts'
import { createConnectors } from '../../connectors/index.ts'
import { findOperatorWorkspace } from '../../notifications/condition.ts'
import { openOutboundGuard } from '../../security/outbound.ts'
import { Problem, problemWith, type Check, type CheckDeps, type Found } from './check.ts'

/** Reads the file of RELAY_NOTICES_FILE as a process of the API does, and tests its destination. */
const checkNotices = async ({ config, db }: Pick<CheckDeps, 'config' | 'db'>): Promise<Found> => {
  const path = config.RELAY_NOTICES_FILE!
  const outbound = openOutboundGuard(config)
  try {
    const said = await testOperatorTarget(path, { config, db, outbound, findConnector: createConnectors(config).find }).catch(
      problemWith(undefined),
    )
    if (said instanceof Error) throw new Problem(`Nobody can be told when deliveries stop: ${said.code}: ${said.message}.`)
    return said
  } finally {
    await outbound.close()
  }
}

/** Checks of what tells the operator of the installation that something is wrong. */
export const operatorChecks: readonly Check[] = [
  {
    name: 'operator',
    urgency: 'is a risk',
    needs: ['schema'],
    remedy: 'Create the workspace, or correct RELAY_OPERATOR_WORKSPACE of all processes.',
    applies: ({ config }) => config.RELAY_OPERATOR_WORKSPACE !== undefined,
    find: async ({ config, db }) => {
      const name = config.RELAY_OPERATOR_WORKSPACE!
      if ((await findOperatorWorkspace(db, config)) !== null) return `${name} is told of the incidents of all workspaces`
      return [`There is no workspace ${name}: the operator is told of no incident.`]
    },
  },
  {
    name: 'notices',
    urgency: 'is a risk',
    needs: ['schema'],
    remedy: 'Correct the file of RELAY_NOTICES_FILE, and restart the processes of the API. If the target is away, restore it.',
    applies: ({ config }) => config.RELAY_NOTICES_FILE !== undefined,
    find: checkNotices,
  },
]
