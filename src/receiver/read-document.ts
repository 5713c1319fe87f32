import type { Readable } from 'node:stream'
import type { ArchiveComponent, ArchiveDocument } from '../archive/documents.ts'
import { componentNamed } from '../content-server/component-name.ts'
import { shortBytes, type ContentStore } from '../content/store.ts'
import type { CommandContext, CommandDeps, ContentStores } from './command-context.ts'
import { Refusal } from './refusal.ts'
import { documentNotFound, fetchWhole, withFirstBytes } from './upstream.ts'

export const componentNotFound = () => new Refusal('component_not_found', 'the document has no such component')

/** Finds a document, after it has been fetched from the upstream if only that has it. @throws `Refusal` if it does not exist */
export const findDocument = async (context: CommandContext, deps: CommandDeps): Promise<ArchiveDocument> => {
  const find = () => deps.archiveDocuments.find(context.repository.id, context.command.get('docId'))
  const document = (await find()) ?? ((await fetchWhole(context, deps)) ? await find() : undefined)
  if (!document) throw documentNotFound()
  return document
}

/**
 * Finds a component by its exact name, or else by its name in another case. Without a name, finds the document itself (`data`, `data1`).
 * @throws `Refusal` if the component does not exist
 */
export const findComponent = <Component extends { compId: string }>(
  { components }: { components: readonly Component[] },
  compId: string | undefined,
): Component => {
  const component = componentNamed(components, compId)
  if (!component) throw componentNotFound()
  return component
}

/** @throws `Refusal` if retention has removed the bytes */
export const requireOnline = ({ content }: { content: object | null }): void => {
  if (!content) throw new Refusal('component_offline', 'the bytes of this component are no longer kept')
}

interface StoredContent {
  content: NonNullable<ArchiveComponent['content']>
  store: ContentStore
}

/** @throws `Refusal` if retention has removed the bytes, or if this process cannot reach their store */
export const findContent = (component: ArchiveComponent, { stores }: ContentStores): StoredContent => {
  requireOnline(component)
  const content = component.content!
  const store = stores[content.store]
  if (!store) throw new Refusal('unavailable', `the ${content.store} content store is not configured in this process`)
  return { content, store }
}

/** Reads a short range of a content, or opens a longer one and waits for its first bytes. */
export const openContent = ({ content, store }: StoredContent, range: { start: number; end: number }): Promise<Readable | Buffer> =>
  store.readShort && !content.appends && range.end - range.start < shortBytes
    ? store.readShort(content, range)
    : withFirstBytes(store.read(content, range))
