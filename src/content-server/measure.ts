import type { Readable } from 'node:stream'
import { nameOf, type ComponentFacts, type DocumentFacts, type MeasuredDocument } from './answers.ts'
import type { CallOptions, ContentServerClient, ReceivedContent } from './client.ts'
import { contradiction, malformed, type Outcome } from './failure.ts'
import { asOutcome } from './http.ts'

// What info tells of the size of a component is a claim. This is what the answer to get says about it.

type Described = Pick<ComponentFacts, 'compId' | 'sentName' | 'sizeBytes' | 'status'>

/**
 * Compares what info tells of a component with the headers of the answer to get.
 * @returns its size, undefined if neither tells it
 * @throws `ContentServerFailure` if they contradict each other
 */
export const agreedSize = (
  { compId, sizeBytes }: Pick<Described, 'compId' | 'sizeBytes'>,
  content: Omit<ReceivedContent, 'body'>,
): number | undefined => {
  const { contentLength, sizeBytes: whole } = content
  if (content.compId !== undefined && content.compId !== compId) throw contradiction(compId, `it sends ${content.compId} instead`)
  const [size, ...others] = new Set([sizeBytes, contentLength, whole].filter((told) => told !== undefined))
  if (others.length === 0) return size
  const infoSays = sizeBytes === undefined ? [] : [`info says ${sizeBytes} bytes`]
  const getSays = contentLength === undefined ? [] : [`get ${contentLength}`]
  const headerSays = whole === undefined ? [] : [`the X-Content-Length of get ${whole}`]
  throw contradiction(compId, [...infoSays, ...getSays, ...headerSays].join(', and '))
}

/** Reads a body up to its first byte. @returns false if it has none. Throws `ContentServerFailure` if it breaks off before */
const hasBytes = async (body: Readable): Promise<boolean> => {
  for await (const chunk of body as AsyncIterable<Buffer>) if (chunk.length > 0) return true
  return false
}

/**
 * Asks by get for what info does not tell: the sizes that are missing. Of a component or a document that info calls empty, it finds out
 * whether get sends nothing either: a server that does not know a size may tell 0.
 * @returns as a failure if get contradicts info, or does not tell a missing size
 */
export const measureDocument = (
  client: Pick<ContentServerClient, 'get'>,
  facts: DocumentFacts,
  { signal }: CallOptions = {},
): Promise<Outcome<MeasuredDocument>> => {
  const measure = async (component: Described): Promise<number> => {
    const { compId, sizeBytes, status } = component
    // A component that is offline cannot be read: its read is refused later.
    if (sizeBytes !== undefined && (sizeBytes > 0 || status === 'offline')) return sizeBytes
    const outcome = await client.get(facts.docId, { ...nameOf(component), signal })
    if (!outcome.ok) throw outcome.failure
    const { body, ...content } = outcome.value
    try {
      const size = agreedSize(component, content)
      if (size === undefined) throw malformed(`neither info nor get tells the size of component ${compId}`)
      if (size === 0 && (await hasBytes(body))) throw contradiction(compId, 'info says 0 bytes, and get sends more')
      return size
    } finally {
      body.destroy()
    }
  }

  const requireNothing = async (): Promise<void> => {
    const outcome = await client.get(facts.docId, { signal })
    if (!outcome.ok && outcome.failure.code !== 'not_found') throw outcome.failure
    if (outcome.ok && (await hasBytes(outcome.value.body))) throw malformed('info names no component, and get sends one')
  }

  return asOutcome(async () => {
    if (facts.components.length === 0) await requireNothing()
    const components: MeasuredDocument['components'] = []
    for (const component of facts.components) components.push({ ...component, sizeBytes: await measure(component) })
    return { ...facts, components }
  })
}

/** Returns true if info tells the size of every component, and that there are some. An empty component is read before it is believed. */
export const isMeasured = (facts: DocumentFacts): facts is MeasuredDocument =>
  facts.components.length > 0 && facts.components.every(({ sizeBytes }) => sizeBytes !== undefined)
