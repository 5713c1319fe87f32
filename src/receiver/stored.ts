import { once } from 'node:events'
import type { Readable } from 'node:stream'
import type { ByteRange } from '../content/range.ts'
import type { ContentStore } from '../content/store.ts'
import type { ArchivedComponent } from '../db/archive-documents.ts'
import type { Contents } from './call.ts'
import { Refusal } from './refusal.ts'

interface Stored {
  content: NonNullable<ArchivedComponent['content']>
  store: ContentStore
}

/** @throws Refusal where the bytes are no longer kept, or lie in a store that this process cannot reach */
export const findStored = ({ content }: ArchivedComponent, { stores }: Contents): Stored => {
  if (!content) throw new Refusal('component_offline', 'the bytes of this component are no longer kept')
  const store = stores[content.store]
  if (!store) throw new Refusal('unavailable', `the ${content.store} content store is not configured here`)
  return { content, store }
}

/** The bytes, once the first of them are there: a store that is away shall be told by the status, and not by an answer that breaks off. */
export const openStored = async ({ content, store }: Stored, range?: ByteRange): Promise<Readable> => {
  const body = store.read(content, range)
  await once(body, 'readable')
  return body
}
