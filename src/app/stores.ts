import type { Log } from '../base/log.ts'
import type { Config } from '../config/config.ts'
import { createConnectors } from '../connectors/index.ts'
import { createOpenCredentials } from '../connectors/target.ts'
import { createStores } from '../content/configured-stores.ts'
import type { Database } from '../db/database.ts'
import { createInstallation } from '../db/installation.ts'
import { createHomeStore } from '../home/store.ts'
import type { OutboundGuard } from '../security/outbound.ts'
import { createKeyRing } from '../security/seal.ts'

/** Opens the stores that the configuration names, and that of contents which are at a destination only. */
export const openStores = async (db: Database, config: Config, { outbound, log }: { outbound: OutboundGuard; log: Log }) => {
  const own = await createStores(db, config)
  const keyRing = createKeyRing(config.RELAY_SECRET_KEYS)
  const { find: findConnector } = createConnectors(config)
  const calling = { findConnector, openCredentials: createOpenCredentials(keyRing), outbound, installation: createInstallation(db), config }
  const home = createHomeStore({ ...calling, db, log })
  return { stores: { ...own, home }, home, writeTo: own.s3 ?? own.files ?? own.postgres, findConnector, keyRing }
}
