import { setTimeout } from 'node:timers/promises'
import { Connection } from '@temporalio/client'
import { searchAttributes } from '../../workflows/options.ts'
import type { Config } from '../config/config.ts'
import { describeTemporalError, isRefusal } from './errors.ts'

const keyword = 2 // temporal.api.enums.v1.IndexedValueType.INDEXED_VALUE_TYPE_KEYWORD

/** The search attributes of the relay, in the format of the operator service. */
export const attributeTypes = Object.fromEntries(Object.values(searchAttributes).map((key) => [key.name, keyword]))

type RegistrationConfig = Pick<Config, 'temporal' | 'TEMPORAL_START_TIMEOUT_MS'>

const pauseMs = 1_000
// If no call is answered. 30 seconds by default, in which a Temporal that is started at the same time has started.
const triesMax = 6

/**
 * Registers the search attributes by which operators filter. Tries again while Temporal is unavailable or does not accept them yet, for
 * `triesMax` times TEMPORAL_START_TIMEOUT_MS. The relay runs without them.
 * @param onWait is told once what is wrong, if this tries again
 * @returns the reason of a refusal, or undefined if all are registered
 */
export const registerSearchAttributes = async (
  config: RegistrationConfig,
  onWait?: (problem: string, maxMs: number) => void,
): Promise<string | undefined> => {
  const endsAt = Date.now() + triesMax * config.TEMPORAL_START_TIMEOUT_MS
  for (let tries = 1; ; tries += 1) {
    const thrown = await registerOnce(config)
    if (thrown === undefined) return undefined
    const problem = describeTemporalError(thrown, config.temporal)
    if (isRefusal(thrown) || Date.now() + pauseMs >= endsAt) return problem
    if (tries === 1) onWait?.(problem, endsAt - Date.now())
    await setTimeout(pauseMs)
  }
}

const registerOnce = async (config: RegistrationConfig): Promise<unknown> => {
  const { connectionOptions, namespace } = config.temporal
  try {
    const connection = await Connection.connect({ ...connectionOptions, connectTimeout: config.TEMPORAL_START_TIMEOUT_MS })
    try {
      await connection.withDeadline(Date.now() + config.TEMPORAL_START_TIMEOUT_MS, async () => {
        await addMissing(connection, namespace ?? 'default')
        await requireAccepted(connection, namespace ?? 'default')
      })
    } finally {
      await connection.close()
    }
    return undefined
  } catch (thrown) {
    return thrown
  }
}

/** Registers those search attributes that are missing. @throws if the server refuses */
export const addMissing = async (connection: Pick<Connection, 'operatorService'>, namespace: string): Promise<void> => {
  const { customAttributes } = await connection.operatorService.listSearchAttributes({ namespace })
  const missing = Object.entries(attributeTypes).filter(([name]) => !(name in customAttributes))
  if (missing.length === 0) return
  await connection.operatorService.addSearchAttributes({ namespace, searchAttributes: Object.fromEntries(missing) })
}

/** A cluster lists new search attributes some seconds before it accepts them. @throws if it does not */
const requireAccepted = async ({ workflowService }: Connection, namespace: string): Promise<void> => {
  const query = Object.keys(attributeTypes).map((name) => `${name} = 'none'`)
  await workflowService.countWorkflowExecutions({ namespace, query: query.join(' or ') })
}
