import { clampRange } from '../../content/store.ts'
import type { Answer } from '../answer.ts'
import type { CommandHandler } from '../command-context.ts'
import { componentHeaders } from '../document-headers.ts'
import { findComponent, findContent, findDocument, openContent } from '../read-document.ts'

/** Reads a component or a range of its bytes. The status is always 200: the interface has no other. */
export const get: CommandHandler = async (context, deps): Promise<Answer> => {
  const { command, exchange } = context
  const component = findComponent(await findDocument(context, deps), command.find('compId'))
  const stored = findContent(component, deps.contents)

  const toOffset = Number(command.find('toOffset') ?? -1)
  const range = clampRange(stored.content, {
    start: Number(command.find('fromOffset') ?? 0),
    end: toOffset < 0 ? undefined : toOffset,
  })
  const headers = {
    'Content-Type': component.contentType,
    ...componentHeaders(component, command.get('pVersion')),
    'Content-Length': range ? range.end - range.start + 1 : 0,
  }
  if (!range || exchange.request.method === 'HEAD') return { status: 200, headers, body: '' }
  const pieces = [{ contentId: stored.content.id, start: range.start, sizeBytes: range.end - range.start + 1 }]
  return { status: 200, headers, body: await openContent(stored, range), pieces }
}
