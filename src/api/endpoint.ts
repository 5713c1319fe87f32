import { createHash } from 'node:crypto'
import { Router } from '@koa/router'
import type Koa from 'koa'
import { z } from 'zod'
import type { Authenticate } from '../access/authenticate.ts'
import type { ConcurrencyLimit } from '../base/concurrency-limit.ts'
import { AppError } from '../base/errors.ts'
import { plainMessages } from '../base/issue-messages.ts'
import { bodyRefusal, invalidRequest, methodNotAllowed, notFound, nothingHere } from '../base/refusals.ts'
import { isStorable } from '../base/text.ts'
import type { Config } from '../config/config.ts'
import type { Execution, Requester } from '../db/audit.ts'
import type { AuditEvent } from '../domain/audit-events.ts'
import { toCamelCase, toSnakeCase, type CamelCased, type CamelCasedOutput } from '../domain/casing.ts'
import { answerBytes, answerCsv, type CsvExport, type Download } from '../http/attachments.ts'
import { readJson, queryOf } from '../http/input.ts'
import { nameActor } from '../http/request-log.ts'
import type { Actor } from '../security/api-keys.ts'
import { demandLevel, type KeyLevel } from '../security/levels.ts'
import type { Idempotency, JsonAnswer } from './idempotency.ts'
import { setLinks } from './pagination.ts'
import type { Place, Places } from './places.ts'

interface RequestContext {
  actor: Requester
  workspaceId: string
  /** Aborted when the client disconnects. */
  signal: AbortSignal
  /** Waits for something else than the database, such as Temporal or an event, without the place of the request. */
  elsewhere: Place['whileElsewhere']
  /** Sets a header of the response, which the endpoint names in `headers`. */
  setHeader(name: string, value: string): void
  /** Compares the current values of a resource with `If-Match`. Called with the resource locked. @throws AppError 412 */
  checkVersion: CheckVersion
}

type ResponseKind = z.ZodType | 'bytes' | 'csv' | 'none'
type Answer<Response extends ResponseKind> = Response extends z.ZodType
  ? CamelCasedOutput<Response>
  : Response extends 'bytes'
    ? Download
    : Response extends 'csv'
      ? CsvExport
      : void

const empty = z.strictObject({})
type Empty = typeof empty

interface Definition<
  Params extends z.ZodObject,
  Query extends z.ZodObject,
  Body extends z.ZodObject,
  Response extends ResponseKind,
  Other extends ResponseKind = Response,
> {
  method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** Relative to `/api/{userSlug}/{workspaceSlug}`, with parameters written as `:id`. */
  path: string
  /** The name of the operation, where the one that method and path give would mislead. */
  operation?: string
  /** The lowest key level that is allowed to call the endpoint. */
  level: KeyLevel
  /** A short title for the API reference, in the imperative. */
  summary: string
  /** Details for the API reference. */
  description?: string
  /** Present if the endpoint will be removed. */
  deprecated?: Deprecation
  /** The audit events that a successful call can record. */
  audit?: AuditEvent | readonly AuditEvent[]
  /** Mismatches are answered with 404. */
  params?: Params
  /** Strict; mismatches are answered with 400. */
  query?: Query
  /** Strict; malformed bodies are answered with 400, invalid values with 422. */
  body?: Body
  response: Response
  /** True if the response, which is `bytes`, can be read in ranges. */
  hasRanges?: true
  /** The status of a success. By default 200, or 204 without a body. */
  status?: number
  /** When the endpoint answers a valid request with 409. If absent, the endpoint never does. */
  conflict?: string
  /** When the endpoint answers a valid request with 410. If absent, the endpoint never does. */
  gone?: string
  /** A second success status, the answers that have it, and their schema if it is another one. */
  alternative?: { status: number; description: string; response?: Other; appliesTo(answer: Answer<Response> | Answer<Other>): boolean }
  /** The headers that a handler sets, with their descriptions. */
  headers?: Record<string, string>
  /** Returns the values of the answer that its `ETag` stands for: those that a client can read and change. */
  version?(answer: Answer<Response>): unknown
  /**
   * The endpoint tries something at another system, or stores a document as a source system does. It takes its time, so it has no place among
   * the requests that use the database, but a limit of its own.
   */
  isTest?: true
  /** A POST that changes nothing, so that a repetition may be executed: its answer is not stored for an `Idempotency-Key`. */
  changesNothing?: true
  /** The handler calls `checkVersion`. Any other endpoint that changes something refuses `If-Match`: it has no version to compare. */
  checksVersion?: true
  /** Input and answer have camelCase names; the schemas have the snake_case names of the API. */
  handle(
    input: { params: CamelCasedOutput<Params>; query: CamelCasedOutput<Query>; body: CamelCasedOutput<Body> },
    context: RequestContext,
  ): Promise<Answer<Response> | Answer<Other>>
}

/** That an endpoint will be removed. docs/api-stability.md says how long before. */
interface Deprecation {
  /** The days on which it was deprecated and from which it may be removed, as `2027-01-31`. */
  since: string
  sunset: string
  /** The page that says what to use instead. */
  link: string
}

/** Sets the headers that tell a client of a deprecated endpoint (RFC 9745, RFC 8594). */
const announce = (context: Koa.Context, { since, sunset, link }: Deprecation): void => {
  context.set({ deprecation: `@${Date.parse(since) / 1_000}`, sunset: new Date(sunset).toUTCString() })
  context.append('link', `<${link}>; rel="deprecation"; type="text/html"`)
}

/** An endpoint of any input and output. Routes, API reference and typed client are generated from a table of these. */
export type Endpoint = Omit<
  Definition<z.ZodObject, z.ZodObject, z.ZodObject, ResponseKind>,
  'handle' | 'alternative' | 'version' | 'status'
> & {
  status: number
  version?(answer: unknown): unknown
  alternative?: { status: number; description: string; response?: ResponseKind; appliesTo(answer: unknown): boolean }
  handle(input: { params: unknown; query: unknown; body: unknown }, context: RequestContext): Promise<unknown>
}

/** Defines an endpoint as a value that contains everything needed to route, validate and document it. */
export const endpoint = <
  Response extends ResponseKind,
  Params extends z.ZodObject = Empty,
  Query extends z.ZodObject = Empty,
  Body extends z.ZodObject = Empty,
  Other extends ResponseKind = Response,
>(
  definition: Definition<Params, Query, Body, Response, Other>,
): Endpoint => ({ status: definition.response === 'none' ? 204 : 200, ...definition })

const read = <Schema extends z.ZodObject>(
  schema: Schema,
  value: unknown,
  refuse: (error: z.ZodError) => AppError,
): CamelCased<z.output<Schema>> => {
  const parsed = schema.safeParse(value, plainMessages)
  if (!parsed.success) throw refuse(parsed.error)
  return toCamelCase(schema, parsed.data)
}

const readQuery = (schema: z.ZodObject, context: Koa.Context) => {
  const query = queryOf(context)
  if (!isStorable(Object.entries(query).flat(2).join(''))) {
    throw new AppError('invalid_request', 'The query contains NUL characters or unpaired surrogates.')
  }
  return read(schema, query, (error) => invalidRequest('query', error.issues))
}

export interface MountDeps {
  authenticate: Authenticate
  idempotency: Idempotency
  places: Pick<Places, 'enter'>
  tests: Pick<ConcurrencyLimit, 'enter'>
  config: Pick<Config, 'RELAY_BASE_URL'>
}

const testRetryAfterSeconds = 5

/** Lets a request begin as soon as its turn has come. @throws `AppError` 429 or 503 if too many are running */
const begin = async (definition: Endpoint, actor: Actor, { places, tests }: Pick<MountDeps, 'places' | 'tests'>): Promise<Place> => {
  if (!definition.isTest) return places.enter(actor)
  const caller = `${actor.type} ${actor.id}`
  const work = { workspaceId: actor.workspace.id, caller, what: 'running tests', retryAfterSeconds: testRetryAfterSeconds }
  return { leave: tests.enter(work), whileElsewhere: (wait) => wait() }
}

const serve =
  (definition: Endpoint, deps: MountDeps) =>
  async (context: Koa.Context): Promise<void> => {
    const { authenticate, idempotency, config } = deps
    if (definition.deprecated) announce(context, definition.deprecated)
    const { userSlug, workspaceSlug, ...named } = context.params as Record<string, string>
    const actor = await authenticate(context, { userSlug: userSlug!, workspaceSlug: workspaceSlug! })
    nameActor(context, actor)
    demandLevel(actor, definition.level)
    const params = read(definition.params ?? empty, named, notFound)
    const query = readQuery(definition.query ?? empty, context)
    const json = definition.body && (await readJson(context))
    const body = definition.body && read(definition.body, json, bodyRefusal)
    if (definition.method !== 'GET' && definition.method !== 'POST' && !definition.checksVersion) refuseIfMatch(context)

    const disconnect = new AbortController()
    context.res.once('close', () => disconnect.abort())
    // Only now: what comes before depends on the speed of the client.
    const place = await begin(definition, actor, deps)
    const handle = (execution?: Execution) => {
      const [workspaceId, checkVersion] = [actor.workspace.id, checkVersionOf(context)]
      const setHeader = (name: string, value: string) => context.set(name, value)
      context.state['hasBegun'] = true
      return definition.handle(
        { params, query, body },
        {
          actor: { ...actor, execution },
          workspaceId,
          signal: disconnect.signal,
          elsewhere: place.whileElsewhere,
          setHeader,
          checkVersion,
        },
      )
    }
    context.set('cache-control', 'no-store')
    if (definition.response === 'bytes' || definition.response === 'csv') {
      // The client takes its time to read it.
      const answer = await handle().finally(place.leave)
      context.status = definition.status
      return definition.response === 'bytes' ? answerBytes(context, answer as Download) : answerCsv(context, answer as CsvExport)
    }
    const execute = async (execution?: Execution) => toJsonAnswer(definition, await handle(execution))
    const request = { body: json, changesNothing: definition.changesNothing === true }
    const answering = definition.method === 'POST' ? idempotency(context, actor, request, execute) : execute()
    const answer = await answering.finally(place.leave)
    context.status = answer.status
    context.body = answer.body
    if (answer.etag !== undefined) context.set('etag', answer.etag)
    setLinks(context, config.RELAY_BASE_URL)
    return undefined
  }

const toJsonAnswer = ({ response, status, alternative, version }: Endpoint, answer: unknown): JsonAnswer => {
  const other = alternative?.appliesTo(answer) ? alternative : undefined
  const schema = other?.response ?? response
  return {
    status: other?.status ?? status,
    ...(version && { etag: entityTagOf(version(answer)) }),
    body: typeof schema === 'string' ? null : toSnakeCase(schema, answer),
  }
}

const parameterCount = (path: string) => path.split(':').length

/**
 * Routes requests to endpoints. If two paths match, the one with fewer parameters decides: `/documents/retry` is not the document `retry`.
 * A method that the path does not have is answered with 405, any other path with 404.
 */
export const mount = (endpoints: readonly Endpoint[], deps: MountDeps): Koa.Middleware => {
  const byPath = Map.groupBy(endpoints, ({ path }) => path)
  const router = new Router({ prefix: '/api/:userSlug/:workspaceSlug' })
  for (const [path, definitions] of [...byPath].toSorted(([one], [other]) => parameterCount(one) - parameterCount(other))) {
    const handlers = new Map(definitions.map((definition) => [definition.method as string, serve(definition, deps)]))
    const methods = [...handlers.keys(), ...(handlers.has('GET') ? ['HEAD'] : [])].toSorted()
    router.all(path, (context) => {
      const handle = handlers.get(context.method === 'HEAD' ? 'GET' : context.method)
      if (!handle) throw methodNotAllowed(context, methods)
      return handle(context)
    })
  }
  const routes = router.routes() as unknown as Koa.Middleware
  return (context) =>
    routes(context, () => {
      throw nothingHere()
    })
}

/** Returns the entity tag of values: their digest. */
export const entityTagOf = (values: unknown): string => `"${createHash('sha256').update(JSON.stringify(values)).digest('base64url')}"`

/** Checks that a resource still has the values that the client has seen. @throws AppError 412 */
type CheckVersion = (values: unknown) => void

// What proxies that compress make of a tag: nginx and Cloudflare make it weak, Apache and Jetty append the coding, as in `"x-gzip"` and `"x--gzip"`.
const changedByProxy = /^(?:W\/)?("[\w-]{43})(?:(?:--?|[;:+])(?:gzip|x-gzip|br|zstd|deflate|df))?"$/

/**
 * Returns the tag that a proxy has received. The tag is the digest of values and not of bytes, so that it names the same version in every
 * coding: a weak tag may be compared, although RFC 9110, 13.1.1 forbids it for tags of bytes.
 */
const ownTagOf = (tag: string): string => tag.replace(changedByProxy, '$1"')

/**
 * Returns the check of the header `If-Match`, which the use case calls with the resource locked. Without the header, every version is
 * accepted.
 */
const checkVersionOf = (context: Koa.Context): CheckVersion => {
  const wanted = context
    .get('if-match')
    .split(',')
    .map((tag) => ownTagOf(tag.trim()))
  return (values) => {
    if (wanted[0] === '' || wanted.includes('*') || wanted.includes(entityTagOf(values))) return
    throw new AppError('precondition_failed', 'The resource has changed since its ETag was returned. Retrieve it again.')
  }
}

/** Refuses a condition on a resource without an entity tag, instead of ignoring it. `*` asks only that the resource exists. */
const refuseIfMatch = (context: Koa.Context): void => {
  if (['', '*'].includes(context.get('if-match'))) return
  throw new AppError('precondition_failed', 'This resource has no ETag, so If-Match cannot be met.')
}
