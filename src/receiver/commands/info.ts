import type { ArchivedComponent, ArchiveDocument } from '../../db/archive-documents.ts'
import type { Answer } from '../answer.ts'
import { documentHeaders, findComponent, findDocument } from '../archived.ts'
import type { CommandHandler } from '../call.ts'
import { createDocumentParts } from '../document-parts.ts'
import { escapeHtml, page } from '../html.ts'

/** What a document consists of: one part a component, without their bytes. */
export const info: CommandHandler = async (call, deps): Promise<Answer> => {
  const { command, source } = call
  const document = await findDocument(call, deps)
  const compId = command.find('compId')
  const components = compId === undefined ? document.components : [findComponent(document, compId)]
  const pVersion = command.get('pVersion')
  const headers = documentHeaders(document, source.repository.repoId, components, pVersion)
  if (command.find('resultAs') === 'html') {
    return { status: 200, headers: { 'Content-Type': 'text/html; charset=utf-8', ...headers }, body: asPage(document, components) }
  }
  const parts = createDocumentParts(pVersion)
  return {
    status: 200,
    headers: { 'Content-Type': parts.contentType, ...headers },
    body: Buffer.concat([...components.flatMap((component) => [parts.head(component, 0), parts.foot]), parts.end(components.length)]),
  }
}

const asPage = (document: ArchiveDocument, components: ArchivedComponent[]): string => {
  const rows = components.map(
    ({ compId, contentType, sizeBytes, modifiedAt }) =>
      `<tr><td>${escapeHtml(compId)}</td><td>${escapeHtml(contentType)}</td><td>${sizeBytes}</td><td>${modifiedAt.toISOString()}</td></tr>`,
  )
  return page(
    `Document ${document.docId}`,
    `<table><tr><th>Component</th><th>Content type</th><th>Bytes</th><th>Modified</th></tr>${rows.join('')}</table>`,
  )
}
