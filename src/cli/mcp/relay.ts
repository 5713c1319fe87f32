import { UserError } from '../../base/errors.ts'
import { workspaceNamePattern } from '../../base/workspace-name.ts'

// Longer than the longest wait of the API, 30 s.
const callMaxMs = 45_000
// A page of 20 rows has some 100 KB. More is not an answer of a relay, or nothing that an agent could read.
const answerMaxBytes = 4 * 1024 * 1024

// Untyped JSON: the tools hand it on, and the names that they use are tested against openapi.json.
export type Json = ReturnType<typeof JSON.parse>

export interface Request {
  method: 'GET' | 'POST'
  /** Relative to the workspace. */
  path: string
  query?: Record<string, string>
  body?: object
}

/** An answer of the relay other than 2xx, or none. `code` is one of docs/errors.md, or one of this file. */
export class RelayProblem extends Error {
  readonly fields: { code: string; message: string } & Record<string, unknown>

  constructor(fields: RelayProblem['fields']) {
    super(fields.message)
    this.fields = fields
  }
}

export interface Relay {
  /** @throws RelayProblem */
  call(request: Request, signal: AbortSignal): Promise<Json>
}

/**
 * Returns a client of the management API for one workspace. It has the level of the key, which is read from the environment only: arguments
 * are visible to every user of the machine.
 * @throws UserError
 */
export const relayOf = (options: { url?: string; workspace?: string }, variables: NodeJS.ProcessEnv): Relay => {
  const given = { url: options.url ?? variables['RELAY_URL'], workspace: options.workspace ?? variables['RELAY_WORKSPACE'] }
  const key = variables['RELAY_API_KEY'] ?? ''
  if (!given.url) throw new UserError('The address of the relay is missing: use --url, or set RELAY_URL.')
  if (!given.workspace) throw new UserError('The workspace is missing: use --workspace, or set RELAY_WORKSPACE.')
  if (!workspaceNamePattern.test(given.workspace)) throw new UserError('The workspace has the form user/workspace.')
  const base = URL.parse(given.url)
  if (!base || !/^https?:$/.test(base.protocol)) throw new UserError('The address of the relay is not an http or https URL.')
  if (base.username || base.password || base.search || base.hash) {
    throw new UserError('The address of the relay must have no user, password, query or fragment.')
  }
  if (!key) throw new UserError('The API key is missing: set RELAY_API_KEY.')
  // The message of fetch about a header that is not valid contains the header.
  if (!/^[\x21-\x7e]+$/.test(key)) throw new UserError('RELAY_API_KEY is not an API key.')

  const prefix = `${base.href.replace(/\/+$/, '')}/api/${given.workspace}`
  return {
    call: async ({ method, path, query = {}, body }, signal) => {
      const url = `${prefix}${path}${Object.keys(query).length > 0 ? `?${new URLSearchParams(query).toString()}` : ''}`
      const ended = AbortSignal.any([signal, AbortSignal.timeout(callMaxMs)])
      try {
        const response = await fetch(url, {
          method,
          // The key goes to this address only.
          redirect: 'manual',
          headers: {
            authorization: `Bearer ${key}`,
            accept: 'application/json',
            ...(body && { 'content-type': 'application/json' }),
          },
          ...(body && { body: JSON.stringify(body) }),
          signal: ended,
        })
        return readAnswer(response, await readText(response))
      } catch (thrown) {
        throw thrown instanceof RelayProblem ? thrown : noAnswer(base.origin, thrown)
      }
    },
  }
}

const readText = async (response: Response): Promise<string> => {
  const chunks: Uint8Array[] = []
  let bytes = 0
  for await (const chunk of response.body ?? []) {
    bytes += chunk.byteLength
    if (bytes > answerMaxBytes) {
      throw new RelayProblem({ code: 'answer_too_large', message: 'The answer is too large. Ask for fewer rows.' })
    }
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('utf8')
}

const parse = (text: string): Json => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

const readAnswer = ({ status, headers }: Response, text: string): Json => {
  const json = parse(text)
  if (status >= 200 && status < 300 && typeof json === 'object' && json !== null) return json
  const error = json?.error
  if (typeof error?.code === 'string' && typeof error.message === 'string') {
    const seconds = /^\d+$/.exec(headers.get('retry-after') ?? '')?.[0]
    throw new RelayProblem({ ...error, status, ...(seconds !== undefined && { retry_after_seconds: Number(seconds) }) })
  }
  const message = `The answer, with status ${status}, is not one of a relay. Check the address of the relay.`
  throw new RelayProblem({ code: 'unexpected_answer', message, status })
}

const noAnswer = (origin: string, thrown: unknown): RelayProblem => {
  const isLate = thrown instanceof Error && thrown.name === 'TimeoutError'
  const { code } = ((thrown instanceof Error ? thrown.cause : undefined) as { code?: unknown } | undefined) ?? {}
  const reason = isLate ? `within ${callMaxMs / 1_000} s` : typeof code === 'string' ? `(${code})` : ''
  return new RelayProblem({
    code: 'unreachable',
    message: `The relay at ${origin} does not answer ${reason}`.trimEnd() + '. Check that it runs, and the address of the relay.',
  })
}
