import type Koa from 'koa'
import { Router } from '@koa/router'
import { z } from 'zod'
import type { AuditEvent } from '../domain/audit-events.ts'
import { inward, outward, type Inside, type InsideOf } from '../domain/wire.ts'
import { AppError } from '../errors.ts'
import type { Actor, Authenticator } from '../security/api-keys.ts'
import { demandLevel, type KeyLevel } from '../security/levels.ts'
import { isStorable, readJson } from './body.ts'
import { answerBytes, type Download } from './bytes.ts'
import { answerCsv, type CsvExport } from './csv.ts'
import { setLinks } from './links.ts'
import { bodyRefusal, invalidRequest, methodNotAllowed, notFound, nothingHere } from './faults.ts'

interface RequestContext {
  actor: Actor
  workspaceId: string
  /** Aborted when the caller hangs up. */
  signal: AbortSignal
}

type ResponseKind = z.ZodType | 'bytes' | 'csv' | 'none'
type Answer<Response extends ResponseKind> = Response extends z.ZodType
  ? InsideOf<Response>
  : Response extends 'bytes'
    ? Download
    : Response extends 'csv'
      ? CsvExport
      : void

const nothing = z.strictObject({})
type Nothing = typeof nothing

interface Definition<Params extends z.ZodObject, Query extends z.ZodObject, Body extends z.ZodObject, Response extends ResponseKind> {
  method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** Below `/api/{userSlug}/{workspaceSlug}`, with `:id` for parameters. */
  path: string
  /** The lowest level of a key that may ask. */
  level: KeyLevel
  /** One sentence for the API's document. */
  summary: string
  /** The events that a success may be: those that the audit log then has. */
  audit?: AuditEvent | readonly AuditEvent[]
  /** What does not fit is answered 404. */
  params?: Params
  /** Strict; what does not fit is answered 400. */
  query?: Query
  /** Strict; malformed is answered 400, well-formed but wrong 422. */
  body?: Body
  response: Response
  status: number
  /** When a request that is right by itself is answered 409; no such answer without it. */
  conflict?: string
  /** Answers that are a success of another status. */
  alternative?: { status: number; description: string; appliesTo(answer: Answer<Response>): boolean }
  /** Takes and gives our names (camelCase); the schemas hold the wire's. */
  handle(
    input: { params: InsideOf<Params>; query: InsideOf<Query>; body: InsideOf<Body> },
    context: RequestContext,
  ): Promise<Answer<Response>>
}

/** An endpoint of any input and output: what the table holds, from which routes and the API's document are made. */
export type Endpoint = Omit<Definition<z.ZodObject, z.ZodObject, z.ZodObject, ResponseKind>, 'handle' | 'alternative'> & {
  alternative?: { status: number; description: string; appliesTo(answer: unknown): boolean }
  handle(input: { params: unknown; query: unknown; body: unknown }, context: RequestContext): Promise<unknown>
}

/** An endpoint is a value: everything that routing, checking and documenting it need. */
export const endpoint = <
  Response extends ResponseKind,
  Params extends z.ZodObject = Nothing,
  Query extends z.ZodObject = Nothing,
  Body extends z.ZodObject = Nothing,
>(
  definition: Definition<Params, Query, Body, Response>,
): Endpoint => definition

const read = <Schema extends z.ZodObject>(
  schema: Schema,
  value: unknown,
  refuse: (error: z.ZodError) => AppError,
): Inside<z.output<Schema>> => {
  const parsed = schema.safeParse(value, { reportInput: true })
  if (!parsed.success) throw refuse(parsed.error)
  return inward(schema, parsed.data)
}

const readQuery = (schema: z.ZodObject, query: Koa.Context['query']) => {
  if (!isStorable(Object.entries(query).flat(2).join('')))
    throw new AppError('invalid_request', 'The query holds characters that no value has.')
  return read(schema, query, (error) => invalidRequest('query', error.issues))
}

const serve =
  (definition: Endpoint, authenticator: Authenticator, bodyMaxBytes: number) =>
  async (context: Koa.Context): Promise<void> => {
    const { userSlug, workspaceSlug, ...named } = context.params as Record<string, string>
    const actor = await authenticator.authenticate(context.get('authorization'), context.ip, {
      userSlug: userSlug!,
      workspaceSlug: workspaceSlug!,
    })
    demandLevel(actor.level, definition.level)
    const params = read(definition.params ?? nothing, named, notFound)
    const query = readQuery(definition.query ?? nothing, context.query)
    const body = definition.body && read(definition.body, await readJson(context, bodyMaxBytes), bodyRefusal)

    const hangUp = new AbortController()
    context.res.once('close', () => hangUp.abort())
    const answer = await definition.handle({ params, query, body }, { actor, workspaceId: actor.workspace.id, signal: hangUp.signal })

    context.status = definition.alternative?.appliesTo(answer) ? definition.alternative.status : definition.status
    context.set('cache-control', 'no-store')
    if (definition.response === 'none') context.body = null
    else if (definition.response === 'bytes') await answerBytes(context, answer as Download)
    else if (definition.response === 'csv') await answerCsv(context, answer as CsvExport)
    else {
      context.body = outward(definition.response, answer)
      setLinks(context)
    }
  }

/** Routes requests to endpoints; what none of them takes is refused, with the methods that would be. */
export const mount = (
  endpoints: readonly Endpoint[],
  { authenticator, bodyMaxBytes }: { authenticator: Authenticator; bodyMaxBytes: number },
): Koa.Middleware => {
  const router = new Router({ prefix: '/api/:userSlug/:workspaceSlug' })
  for (const definition of endpoints) {
    router.register(definition.path, [definition.method], serve(definition, authenticator, bodyMaxBytes))
  }
  const routes = router.routes() as unknown as Koa.Middleware
  return (context) =>
    routes(context, () => {
      const layers = (context as Koa.Context & { matched?: { methods: string[] }[] }).matched ?? []
      const methods = [...new Set(layers.flatMap((layer) => layer.methods))].toSorted()
      throw methods.length > 0 ? methodNotAllowed(context, methods) : nothingHere()
    })
}
