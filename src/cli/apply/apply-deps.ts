import type { Config } from '../../config/config.ts'
import { createConnectors } from '../../connectors/index.ts'
import { createOutboundGuard } from '../../security/outbound.ts'
import { createKeyRing } from '../../security/seal.ts'
import type { ApplyDeps } from './apply-kinds.ts'

/** Opens what `relay apply` and `relay export` need beside the database for one piece of work, and closes it afterwards. */
export const withApplyDeps = async <T>(config: Config, variables: NodeJS.ProcessEnv, work: (deps: ApplyDeps) => Promise<T>): Promise<T> => {
  const keyRing = createKeyRing(config.RELAY_SECRET_KEYS)
  const findConnector = createConnectors({ directoryRoots: config.RELAY_DIRECTORY_ROOTS }).find
  const outbound = createOutboundGuard({ allowedCidrs: config.RELAY_ALLOWED_PRIVATE_CIDRS })
  try {
    return await work({ config, variables, keyRing, findConnector, outbound })
  } finally {
    await outbound.close()
  }
}
