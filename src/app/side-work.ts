import type { Database } from '../db/database.ts'
import type { OnItsOwn } from '../db/on-its-own.ts'
import type { ClaimDue } from '../db/side-work.ts'
import { createFindLateData } from '../delivery/late-data.ts'
import { createFindEnrichments, isEnrichmentDue } from '../enrichment/enrich.ts'
import { createFindDue } from '../events/send-events.ts'
import type { Temporal } from '../temporal/client.ts'
import type { SideWork } from '../temporal/dispatcher.ts'

// Business data delays the deliveries of a document: every round of the dispatcher looks for it, ten times a second. Nothing waits for the others.
const soonMs = 50
const laterMs = 1_000

/** Creates the side work that the dispatcher starts. */
export const createSideWork = (db: Database, start: Temporal['startSideWork'], onItsOwn: OnItsOwn): SideWork[] => {
  const startWhat = (kind: Parameters<typeof start>[0], claimDue: ClaimDue) => async () => {
    await Promise.all((await claimDue()).map((queue) => onItsOwn('side-work', { kind, id: queue.queueId }, () => start(kind, queue))))
  }
  return [
    { everyMs: soonMs, isDue: isEnrichmentDue, startDue: startWhat('enrichment', createFindEnrichments(db)) },
    { everyMs: laterMs, startDue: startWhat('late_data', createFindLateData(db)) },
    { everyMs: laterMs, startDue: startWhat('events', createFindDue(db)) },
  ]
}
