import { escapeHtml, htmlPage, type Answer } from '../answer.ts'
import type { CommandHandler } from '../command-context.ts'
import { createDocumentParts, documentHeaders } from '../document-headers.ts'
import { findComponent } from '../read-document.ts'
import { describeDocument, type DescribedComponent, type DescribedDocument } from '../upstream.ts'

/** Describes the components of a document, one part per component, without their bytes. */
export const info: CommandHandler = async (context, deps): Promise<Answer> => {
  const { command, repository } = context
  const document = await describeDocument(context, deps)
  const compId = command.find('compId')
  const components = compId === undefined ? document.components : [findComponent(document, compId)]
  const pVersion = command.get('pVersion')
  const headers = documentHeaders(document, repository.repoId, components, pVersion)
  if (command.find('resultAs') === 'html') {
    return { status: 200, headers: { 'Content-Type': 'text/html; charset=utf-8', ...headers }, body: formatPage(document, components) }
  }
  const parts = createDocumentParts(pVersion)
  return {
    status: 200,
    headers: { 'Content-Type': parts.contentType, ...headers },
    body: Buffer.concat([...components.flatMap((component) => [parts.head(component, 0), parts.foot]), parts.end(components.length)]),
  }
}

const formatPage = (document: DescribedDocument, components: DescribedComponent[]): string => {
  const rows = components.map(
    ({ compId, contentType, sizeBytes, modifiedAt }) =>
      `<tr><td>${escapeHtml(compId)}</td><td>${escapeHtml(contentType)}</td><td>${sizeBytes}</td><td>${modifiedAt.toISOString()}</td></tr>`,
  )
  return htmlPage(
    `Document ${document.docId}`,
    `<table><tr><th>Component</th><th>Content type</th><th>Bytes</th><th>Modified</th></tr>${rows.join('')}</table>`,
  )
}
