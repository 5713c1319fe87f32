import { once } from 'node:events'
import type { Answer } from '../answer.ts'
import { componentHeaders, findComponent, findDocument } from '../archived.ts'
import type { CommandHandler } from '../call.ts'
import { Refusal } from '../refusal.ts'

/** A component, or a range of its bytes: always with status 200, which is all that the interface knows. */
export const get: CommandHandler = async (call, deps): Promise<Answer> => {
  const { command, request } = call
  const component = findComponent(await findDocument(call, deps), command.find('compId'))
  if (!component.content) throw new Refusal('component_not_found', 'the bytes of this component are no longer kept')

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

  const store = deps.contents.stores[component.content.store]
  if (!store) throw new Refusal('unavailable', `the ${component.content.store} content store is not configured here`)
  const body = store.read(component.content, { start, end })
  // a store that is away shall be told by the status, and not by an answer that breaks off
  await once(body, 'readable')
  return { status: 200, headers, body }
}
