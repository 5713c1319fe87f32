import { DeliveryError, type AttemptContext, type Connector, type Target } from '../connectors/connector.ts'
import type { Database } from '../db/database.ts'
import { findHomeUse, findLastDelivered } from './copies.ts'

/** Creates the function that finds out what a test of a destination also does because it is a home: it reads what was delivered there last. */
export const createProbeHome =
  (db: Database) =>
  /** @returns undefined if the destination is no home */
  async (destinationId: string) => {
    const { repoIds, hasContents } = await findHomeUse(db, destinationId)
    if (repoIds.length === 0 && !hasContents) return undefined
    const last = await findLastDelivered(db, destinationId)
    return async (connector: Connector, target: Target<unknown, unknown>, context: AttemptContext): Promise<string> => {
      const written = await connector.probe(target, context)
      if (!last)
        return `${written} It is the home of ${repoIds.join(', ')}; reading was not tried, because no document was delivered there yet.`
      let bytes = 0
      const isThere = await connector.read!(last, { start: 0, end: 0 }, target, context, async (pieces) => {
        for await (const piece of pieces) bytes += piece.length
      })
      if (isThere && bytes === 1) return `${written} It is a home, and the relay read ${last.location}.`
      throw new DeliveryError(
        'copy_missing',
        `the destination is a home, and ${last.location}, which was delivered there last, is not there`,
      )
    }
  }
