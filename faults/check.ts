import type { Sent } from './load.ts'
import type { Query } from './postgres.ts'
import type { Target } from './targets.ts'

/** Result of a row: what was acknowledged, and what became of it. Goal: 0 lost, 0 altered, 0 stuck. */
export interface Counts {
  acknowledged: number
  /** Acknowledged, but not in the database, or recorded as delivered and not at the target. */
  lost: number
  /** Copies at targets whose SHA-256 differs from what was sent. */
  altered: number
  /** Copies beyond the first at targets that keep every message. */
  duplicated: number
  /** Acknowledged, but neither delivered to every target when the time was up, nor failed as the row expects. */
  stuck: number
  /** Creates that were answered otherwise than 2xx, or not at all. */
  refused: number
}

interface DeliveryRow {
  docId: string
  connector: string | null
  status: string | null
  code: string | null
}

export interface Expectation {
  /** Documents that must end `failed`. */
  failed: Set<string>
  /** Documents that the target refuses for good: none may reach it twice. Default: none. */
  refused?: Set<string>
  /** Documents that may have been lost with the database, because they were acknowledged after its backup. */
  gone?: Set<string>
}

const finalStatuses = new Set(['delivered', 'failed', 'cancelled'])

interface Relay {
  /** Runs a statement in the relay's database. */
  query: Query
}

const readDeliveries = ({ query }: Relay, workspaceId: string) =>
  query<DeliveryRow>(
    `
    select documents.doc_id as "docId", destinations.connector_type as connector, deliveries.status, deliveries.last_error_code as code
    from documents
    left join deliveries on deliveries.document_id = documents.id
    left join destinations on destinations.id = deliveries.destination_id
    where documents.workspace_id = $1
    `,
    [workspaceId],
  )

const byDocId = (rows: DeliveryRow[]): Map<string, DeliveryRow[]> => {
  const found = new Map<string, DeliveryRow[]>()
  for (const row of rows) found.set(row.docId, [...(found.get(row.docId) ?? []), row])
  return found
}

/** Returns true if every document of the list that is stored has been delivered, has failed or was cancelled at every target. */
export const areSettled = async (relay: Relay, workspaceId: string, docIds: string[]): Promise<boolean> => {
  const deliveries = byDocId(await readDeliveries(relay, workspaceId))
  return docIds.every((docId) => deliveries.get(docId)?.every(({ status }) => finalStatuses.has(status ?? '')) ?? true)
}

/** Compares what was sent with the database and with what the targets hold. @returns the counts, and a line for each kind of deviation */
export const check = async (
  relay: Relay,
  workspaceId: string,
  sent: Sent[],
  targets: Target[],
  expected: Expectation,
): Promise<{ counts: Counts; findings: string[] }> => {
  const findings = new Map<string, number>()
  const find = (text: string, times = 1) => void findings.set(text, (findings.get(text) ?? 0) + times)
  const deliveries = byDocId(await readDeliveries(relay, workspaceId))
  const acknowledged = sent.filter(({ docId, outcome }) => outcome === 'acknowledged' && !expected.gone?.has(docId))
  // A document may be sent with several contents. The acknowledged one is the one that counts.
  const contents = new Map(sent.map(({ docId, sha256 }) => [docId, sha256]))
  for (const { docId, sha256 } of acknowledged) contents.set(docId, sha256)

  const copies = new Map<Target, Map<string, string[]>>()
  for (const target of targets) {
    const held = new Map<string, string[]>()
    for (const { docId, sha256 } of await target.holdings()) held.set(docId, [...(held.get(docId) ?? []), sha256])
    copies.set(target, held)
  }

  const lost = new Set<string>()
  const stuck = new Set<string>()
  for (const { docId } of acknowledged) {
    const rows = deliveries.get(docId)
    if (!rows) {
      lost.add(docId)
      find('acknowledged, but not in the database')
      continue
    }
    for (const target of targets) {
      const row = rows.find(({ connector }) => connector === target.kind)
      const isHeld = copies.get(target)!.has(docId)
      if (!row) {
        stuck.add(docId)
        find(`no delivery to ${target.kind}`)
      } else if (row.status === 'delivered' && !isHeld) {
        lost.add(docId)
        find(`recorded as delivered, but not at ${target.kind}`)
      } else if (expected.failed.has(docId) ? row.status !== 'failed' : row.status !== 'delivered') {
        stuck.add(docId)
        find(`${row.status} at ${target.kind}${row.code === null ? '' : ` (${row.code})`}${isHeld ? ', although it has arrived' : ''}`)
      }
    }
  }

  let altered = 0
  let duplicated = 0
  for (const [target, held] of copies) {
    for (const [docId, digests] of held) {
      const wrong = digests.filter((sha256) => sha256 !== contents.get(docId)).length
      if (wrong > 0) find(`altered at ${target.kind}`, wrong)
      altered += wrong
      // A document that must fail arrives at each attempt.
      const mayArriveAgain = expected.failed.has(docId) && !expected.refused?.has(docId)
      if (target.keepsMessages && digests.length > 1 && !mayArriveAgain) {
        find(`more than once at ${target.kind}`, digests.length - 1)
        duplicated += digests.length - 1
      }
    }
  }
  const acknowledgedIds = new Set(acknowledged.map(({ docId }) => docId))
  for (const { docId, answer, outcome } of sent) {
    if (outcome === 'refused' && deliveries.has(docId) && !acknowledgedIds.has(docId)) find(`answered ${answer}, but stored`)
  }
  const refusals = sent.filter(({ outcome }) => outcome !== 'acknowledged')
  for (const { answer, outcome } of refusals)
    find(outcome === 'unknown' ? `no answer to a create (${answer})` : `create refused (${answer})`)
  return {
    counts: {
      acknowledged: acknowledged.length,
      lost: lost.size,
      altered,
      duplicated,
      stuck: stuck.size,
      refused: refusals.length,
    },
    findings: [...findings].map(([text, times]) => `${times} x ${text}`),
  }
}
