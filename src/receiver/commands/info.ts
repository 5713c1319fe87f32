import { randomBytes } from 'node:crypto'
import type { ArchivedComponent, ArchiveDocument } from '../../db/archive-documents.ts'
import type { Answer } from '../answer.ts'
import { componentHeaders, documentHeaders, findComponent, findDocument } from '../archived.ts'
import type { CommandHandler } from '../call.ts'
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
  const boundary = `relay${randomBytes(12).toString('hex')}`
  const body = components.map((component) => asPart(component, pVersion, boundary)).join('') || `--${boundary}\r\n`
  return {
    status: 200,
    headers: { 'Content-Type': `multipart/form-data; boundary=${boundary}`, ...headers },
    // header values hold one character a byte
    body: Buffer.from(`${body}--${boundary}--\r\n`, 'latin1'),
  }
}

const asPart = (component: ArchivedComponent, pVersion: string, boundary: string): string => {
  const headers = { 'Content-Type': component.contentType, 'Content-Length': 0, ...componentHeaders(component, pVersion) }
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
  return `--${boundary}\r\n${lines.join('')}\r\n\r\n`
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
