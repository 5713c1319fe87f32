import { once } from 'node:events'
import type { Readable } from 'node:stream'
import type { ArchiveComponent, ArchiveDocument } from '../archive/documents.ts'
import type { ByteRange } from '../content/store.ts'
import type { ContentStore } from '../content/store.ts'
import type { CommandContext, CommandDeps, ContentStores } from './command-context.ts'
import { Refusal } from './refusal.ts'

export const documentNotFound = () => new Refusal('document_not_found', 'the document does not exist')
export const componentNotFound = () => new Refusal('component_not_found', 'the document has no such component')

/** @throws `Refusal` if the document does not exist */
export const findDocument = async (
  { repository, command }: CommandContext,
  { archiveDocuments }: Pick<CommandDeps, 'archiveDocuments'>,
): Promise<ArchiveDocument> => {
  const document = await archiveDocuments.find(repository.id, command.get('docId'))
  if (!document) throw documentNotFound()
  return document
}

/**
 * Finds a component by its exact name, or else by its name in another case. Without a name, finds the document itself (`data`, `data1`).
 * @throws `Refusal` if the component does not exist
 */
export const findComponent = ({ components }: ArchiveDocument, compId: string | undefined): ArchiveComponent => {
  const named = (name: string) => components.find((component) => component.compId === name)
  const component =
    compId === undefined
      ? (named('data') ?? named('data1'))
      : (named(compId) ?? components.find((candidate) => candidate.compId.toLowerCase() === compId.toLowerCase()))
  if (!component) throw componentNotFound()
  return component
}

interface StoredContent {
  content: NonNullable<ArchiveComponent['content']>
  store: ContentStore
}

/** @throws `Refusal` if retention has removed the bytes, or if this process cannot reach their store */
export const findContent = ({ content }: ArchiveComponent, { stores }: ContentStores): StoredContent => {
  if (!content) throw new Refusal('component_offline', 'the bytes of this component are no longer kept')
  const store = stores[content.store]
  if (!store) throw new Refusal('unavailable', `the ${content.store} content store is not configured in this process`)
  return { content, store }
}

/** Opens a content and waits for its first bytes, so that an unavailable store results in an error status and not in a broken answer. */
export const openContent = async ({ content, store }: StoredContent, range?: ByteRange): Promise<Readable> => {
  const body = store.read(content, range)
  await once(body, 'readable')
  return body
}
