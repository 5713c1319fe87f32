// What the relay's workflows have and the bare ones lack. The workflows get the names of the parts, and make the rest of them themselves.
import type { DeliveryInput, DocumentInput } from '../../workflows/messages.ts'
import { deliveryOptions, documentOptions } from '../../workflows/options.ts'

export type Part = 'priority keys' | 'summaries' | 'search attributes' | 'inputs'

const destination = { id: '01KB3Q5N1V8TZ6W4YHFC9XE2GJ', name: 'Invoices archive', connector: 'webhook' }

const termsOf = (docId: string) => ({
  documentId: docId,
  workspace: 'acme/invoices',
  repoId: 'Z1',
  docId,
  compId: 'data',
  policy: { maxRetries: 10, ttlMs: 86_400_000, initialIntervalMs: 1_000, maxIntervalMs: 3_600_000 },
  retryWindowMs: 604_800_000,
  attemptTimeoutMs: 300_000,
  heartbeatTimeoutMs: 30_000,
})

const registered = { registered: true }

type Options = ReturnType<typeof deliveryOptions> | ReturnType<typeof documentOptions>

/** Returns the options of a workflow of the relay as far as they belong to these parts. */
const pick = (parts: Part[], { priority, staticSummary, typedSearchAttributes = [] }: Options) => ({
  ...(parts.includes('priority keys') && { priority }),
  ...(parts.includes('summaries') && { staticSummary }),
  ...(parts.includes('search attributes') && { typedSearchAttributes }),
})

/** Returns what the start of a document's workflow has of these parts, and its input. */
export const partsOfDocument = (parts: Part[], docId: string): { options: object; input: DocumentInput | undefined } => {
  const input = { ...termsOf(docId), destinations: [destination] }
  return { options: pick(parts, documentOptions(input, registered)), input: parts.includes('inputs') ? input : undefined }
}

/** Returns what the start of a delivery's workflow has of these parts, and its input. */
export const partsOfDelivery = (parts: Part[], docId: string): { options: object; input: DeliveryInput | undefined } => {
  const input = { ...termsOf(docId), destination }
  return { options: pick(parts, deliveryOptions(input, registered)), input: parts.includes('inputs') ? input : undefined }
}
