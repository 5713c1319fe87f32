import type { Answer } from '../answer.ts'
import { componentHeaders, findComponent, findDocument } from '../archived.ts'
import type { CommandHandler } from '../call.ts'
import { findStored, openStored } from '../stored.ts'

/** A component, or a range of its bytes: always with status 200, which is all that the interface knows. */
export const get: CommandHandler = async (call, deps): Promise<Answer> => {
  const { command, request } = call
  const component = findComponent(await findDocument(call, deps), command.find('compId'))
  const stored = findStored(component, deps.contents)

  const start = Number(command.find('fromOffset') ?? 0)
  const toOffset = Number(command.find('toOffset') ?? -1)
  const end = Math.min(toOffset < 0 ? Number.MAX_SAFE_INTEGER : toOffset, component.sizeBytes - 1)
  const length = Math.max(end - start + 1, 0)
  const headers = {
    'Content-Type': component.contentType,
    ...componentHeaders(component, command.get('pVersion')),
    'X-Content-Type-Options': 'nosniff',
    'Content-Length': length,
  }
  if (length === 0 || request.method === 'HEAD') return { status: 200, headers, body: '' }
  return { status: 200, headers, body: await openStored(stored, { start, end }) }
}
