import { clampRange } from '../../content/range.ts'
import type { Answer } from '../answer.ts'
import { componentHeaders, findComponent, findDocument } from '../archived.ts'
import type { CommandHandler } from '../call.ts'
import { findStored, openStored } from '../stored.ts'

/** A component, or a range of its bytes: always with status 200, which is all that the interface knows. */
export const get: CommandHandler = async (call, deps): Promise<Answer> => {
  const { command, request } = call
  const component = findComponent(await findDocument(call, deps), command.find('compId'))
  const stored = findStored(component, deps.contents)

  const toOffset = Number(command.find('toOffset') ?? -1)
  const range = clampRange(stored.content, {
    start: Number(command.find('fromOffset') ?? 0),
    end: toOffset < 0 ? undefined : toOffset,
  })
  const headers = {
    'Content-Type': component.contentType,
    ...componentHeaders(component, command.get('pVersion')),
    'X-Content-Type-Options': 'nosniff',
    'Content-Length': range ? range.end - range.start + 1 : 0,
  }
  if (!range || request.method === 'HEAD') return { status: 200, headers, body: '' }
  return { status: 200, headers, body: await openStored(stored, range) }
}
