import { Connection } from '@temporalio/client'
import { searchAttributes } from '../../workflows/messages.ts'
import { messageOf } from '../errors.ts'
import type { Config } from '../config.ts'

const keyword = 2 // temporal.api.enums.v1.IndexedValueType.INDEXED_VALUE_TYPE_KEYWORD

/** Every search attribute of ours, as the operator service takes them. */
export const attributeTypes = Object.fromEntries(Object.values(searchAttributes).map((key) => [key.name, keyword]))

/**
 * Registers what operators filter by. Where the server does not let us, the product runs without them.
 * @returns why not, or undefined where all are registered now
 */
export const registerSearchAttributes = async (
  config: Pick<Config, 'temporal' | 'TEMPORAL_START_TIMEOUT_MS'>,
): Promise<string | undefined> => {
  const { connectionOptions, namespace } = config.temporal
  try {
    const connection = await Connection.connect({ ...connectionOptions, connectTimeout: config.TEMPORAL_START_TIMEOUT_MS })
    try {
      await connection.withDeadline(Date.now() + config.TEMPORAL_START_TIMEOUT_MS, () => addMissing(connection, namespace ?? 'default'))
    } finally {
      await connection.close()
    }
    return undefined
  } catch (thrown) {
    return messageOf(thrown)
  }
}

const addMissing = async (connection: Pick<Connection, 'operatorService'>, namespace: string): Promise<void> => {
  const { customAttributes } = await connection.operatorService.listSearchAttributes({ namespace })
  const missing = Object.entries(attributeTypes).filter(([name]) => !(name in customAttributes))
  if (missing.length === 0) return
  await connection.operatorService.addSearchAttributes({ namespace, searchAttributes: Object.fromEntries(missing) })
}
