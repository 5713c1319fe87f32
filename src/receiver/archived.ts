import type { ArchivedComponent, ArchiveDocument } from '../db/archive-documents.ts'
import { encodeHeader } from './bytes.ts'
import type { Call, CommandDeps } from './call.ts'
import { Refusal } from './refusal.ts'

/** @throws Refusal where there is no such document */
export const findDocument = async ({ source, command }: Call, { archiveDocuments }: CommandDeps): Promise<ArchiveDocument> => {
  const document = await archiveDocuments.find(source.repository.id, command.get('docId'))
  if (!document) throw missingDocument()
  return document
}

export const missingDocument = () => new Refusal('document_not_found', 'there is no such document')
export const missingComponent = () => new Refusal('component_not_found', 'the document has no such component')

/**
 * The component of that name, failing that one that differs in case only; without a name the document proper.
 * @throws Refusal where there is none
 */
export const findComponent = ({ components }: ArchiveDocument, compId: string | undefined): ArchivedComponent => {
  const exactly = (name: string) => components.find((component) => component.compId === name)
  const component =
    compId === undefined
      ? (exactly('data') ?? exactly('data1'))
      : (exactly(compId) ?? components.find((candidate) => candidate.compId.toLowerCase() === compId.toLowerCase()))
  if (!component) throw missingComponent()
  return component
}

/** The interface knows dates and times of the day in UTC, apart from each other. */
export const dateOf = (time: Date) => time.toISOString().slice(0, 10)
export const timeOf = (time: Date) => time.toISOString().slice(11, 19)

/** In the order of the interface's own examples. */
export const componentHeaders = (component: ArchivedComponent, pVersion: string) => ({
  'X-compId': encodeHeader(component.compId),
  'X-Content-Length': component.sizeBytes,
  'X-compDateC': dateOf(component.createdAt),
  'X-compTimeC': timeOf(component.createdAt),
  'X-compDateM': dateOf(component.modifiedAt),
  'X-compTimeM': timeOf(component.modifiedAt),
  'X-compStatus': component.content ? 'online' : 'offline',
  'X-pVersion': pVersion,
})

/** The interface's own pages name two of these in two ways; clients look for either. */
export const documentHeaders = (document: ArchiveDocument, repoId: string, components: ArchivedComponent[], pVersion: string) => ({
  'X-dateC': dateOf(document.createdAt),
  'X-timeC': timeOf(document.createdAt),
  'X-dateM': dateOf(document.modifiedAt),
  'X-timeM': timeOf(document.modifiedAt),
  'X-numberComps': components.length,
  'X-numComps': components.length,
  'X-contentRep': encodeHeader(repoId),
  'X-contRep': encodeHeader(repoId),
  'X-docId': document.docId,
  'X-docStatus': 'online',
  'X-pVersion': pVersion,
})
