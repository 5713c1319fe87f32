import { plainAnswer, type DeliveryResult } from '../connectors/connector.ts'
import type { Receipt } from '../domain/receipt.ts'

/** What a target has taken, and the SHA-256 of the content in hex. */
export interface Delivered extends DeliveryResult {
  sha256: string
  sizeBytes: number
}

/** Returns the receipt of an attempt. The text of an answer, which may be anything, is no part of it. */
export const receiptOf = (delivered: Delivered, attemptId: string, answeredAt: Date): Receipt => {
  const { body: _, note: __, ...evidence } = plainAnswer(delivered.answer ?? {})
  const known = Object.entries(evidence).filter((entry): entry is [string, string | number] => entry[1] !== undefined)
  const { sha256, sizeBytes } = delivered
  return { sha256, size_bytes: sizeBytes, attempt_id: attemptId, answered_at: answeredAt.toISOString(), target: Object.fromEntries(known) }
}
