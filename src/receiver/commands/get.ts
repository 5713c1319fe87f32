import type { Piece } from '../../capture/stored-body.ts'
import { clampRange } from '../../content/store.ts'
import type { Answer } from '../answer.ts'
import type { CommandHandler } from '../command-context.ts'
import type { Command } from '../command.ts'
import { componentHeaders } from '../document-headers.ts'
import { findComponent, findContent, openContent, requireOnline } from '../read-document.ts'
import { describeDocument, findOrFetch, readFetched, withFirstBytes, type DescribedComponent } from '../upstream.ts'

/** Reads a component or a range of its bytes. The status is always 200: the interface has no other. */
export const get: CommandHandler = async (context, deps): Promise<Answer> => {
  const { command, exchange } = context
  const compId = command.find('compId')
  if (exchange.request.method === 'HEAD') {
    const component = findComponent(await describeDocument(context, deps), compId)
    requireOnline(component)
    return { status: 200, headers: headersOf(component, command), body: '' }
  }
  const found = await findOrFetch(context, deps, { what: 'component', compId })
  if ('fetched' in found) {
    const component = findComponent(found.document, compId)
    const headers = headersOf(component, command)
    const range = rangeOf(component, command)
    const body = await withFirstBytes(readFetched(found.fetched.bodyOf(component.compId), range))
    if (!range) {
      body.destroy()
      return { status: 200, headers, body: '' }
    }
    const keptAs = found.fetched.contentOf(component.compId).then((content) => content && [pieceOf(content, range)])
    return { status: 200, headers, body, keptAs }
  }
  const component = findComponent(found.document, compId)
  const stored = findContent(component, deps.contents)
  const headers = headersOf(component, command)
  const range = rangeOf(component, command)
  if (!range) return { status: 200, headers, body: '' }
  const pieces = [pieceOf(stored.content, range)]
  return { status: 200, headers, body: await openContent(stored, range), pieces }
}

const pieceOf = ({ id: contentId }: { id: string }, { start, end }: { start: number; end: number }): Piece => ({
  contentId,
  start,
  sizeBytes: end - start + 1,
})

/** @returns undefined if the range is empty */
const rangeOf = (component: Pick<DescribedComponent, 'sizeBytes'>, command: Command) => {
  const toOffset = Number(command.find('toOffset') ?? -1)
  return clampRange(component, { start: Number(command.find('fromOffset') ?? 0), end: toOffset < 0 ? undefined : toOffset })
}

const headersOf = (component: DescribedComponent, command: Command) => {
  const range = rangeOf(component, command)
  return {
    'Content-Type': component.contentType,
    ...componentHeaders(component, command.get('pVersion')),
    'Content-Length': range ? range.end - range.start + 1 : 0,
  }
}
