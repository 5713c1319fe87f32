import { z } from 'zod'
import { actorOf, type AuditActor, type Requester } from '../db/audit.ts'
import type { Page, PageRequest } from '../db/page.ts'
import type { CamelCasedOutput } from '../domain/casing.ts'
import { maskSecrets } from '../workspace/configured-kind.ts'
import { endpoint, type Endpoint } from './endpoint.ts'
import { pageOfMany, pageQuery, toPage } from './pagination.ts'
import { idParams, one, resourceOf } from './schemas.ts'

type Check<Row> = (current: Row) => void

/** The use cases of a kind of object, as `createConfigured` in src/workspace/configured.ts makes them. */
interface UseCases<Row, Input, Change> {
  list(workspaceId: string, page: PageRequest): Promise<Page<Row>>
  find(workspaceId: string, id: string): Promise<Row>
  versionOf(row: Row): unknown
  insert(workspaceId: string, values: Input, actor: AuditActor): Promise<Row>
  update(workspaceId: string, id: string, change: Change, actor: AuditActor, check: Check<Row>): Promise<Row>
  /** Missing if there is a `deletion`. */
  delete?(workspaceId: string, id: string, actor: AuditActor, check: Check<Row>): Promise<void>
}

interface Described<Row, Input extends z.ZodObject, Change extends z.ZodObject> {
  type: 'destination' | 'enrichment' | 'event_subscription' | 'notification' | 'repository'
  /** The name of its schemas: `EventSubscription`. */
  id: string
  /** `an event subscription` */
  singular: string
  path: string
  descriptions: { list: string; retrieve?: string; create?: string; update: string; delete?: string }
  resource: z.ZodType
  /** The resource of the answer about one object, if it contains more. */
  single?: z.ZodType
  /** The bodies of a new object and of a change. */
  input: Input
  change: Change
  /** Parameters by which a list is filtered. */
  filter?: z.ZodRawShape
  /** When a new object is refused with 409 or 410. */
  refusals?: { conflict?: string; gone?: string }
  /** @param current undefined for a new object. @throws AppError 403 if this caller must not make the change */
  permit?(actor: Requester, change: CamelCasedOutput<Change>, current?: Row): void
  /** The endpoint that deletes an object, if more than the object is deleted. */
  deletion?: Endpoint
  /** Returns a row as this caller may see it. By default, viewers do not see what the schema masks. */
  shown?(row: Row, actor: Requester): { id: string }
}

const withoutDefault = (schema: z.core.$ZodType) => (schema instanceof z.ZodDefault ? schema.unwrap() : schema)

type WithoutDefault<Schema> = Schema extends z.ZodDefault<infer Inner> ? Inner : Schema

/** Returns the schema of a change: what is missing in it has no default, but stays as it is. */
export const changeOf = <Shape extends z.core.$ZodLooseShape>({ shape }: z.ZodObject<Shape>) => {
  const values = Object.entries(shape).map(([name, schema]) => [name, withoutDefault(schema)])
  return z.strictObject(Object.fromEntries(values) as { [Name in keyof Shape]: WithoutDefault<Shape[Name]> }).partial()
}

/** Returns values as an answer has them: without the bounds and descriptions that only those need who set them. */
export const answered = <Shape extends z.core.$ZodLooseShape>({ shape }: z.ZodObject<Shape>) => {
  const values = Object.entries(shape).map(([name, schema]) => {
    const value = withoutDefault(schema)
    if (value instanceof z.ZodString) return [name, z.string()]
    if (value instanceof z.ZodNumber) return [name, z.int()]
    return [name, value instanceof z.ZodBoolean ? z.boolean() : value]
  })
  return z.object(Object.fromEntries(values) as Shape)
}

/** Returns the endpoints of a kind of object that administrators configure. */
export const configuredEndpoints = <Row extends { id: string }, Input extends z.ZodObject, Change extends z.ZodObject>(
  described: Described<Row, Input, Change>,
  // Not taken apart here: the API is also described without use cases.
  uses: UseCases<Row, CamelCasedOutput<Input>, CamelCasedOutput<Change>>,
): Endpoint[] => {
  const { type, id, singular, path, resource, single = resource, descriptions, refusals, permit } = described
  const { shown = (row: Row, { level }: Requester) => (level === 'viewer' ? maskSecrets(described.input, row) : row) } = described
  const plural = path.slice(1).replace('-', ' ')
  const presentTo = (actor: Requester) => (row: Row) => resourceOf(type)(shown(row, actor))
  const answerTo = (actor: Requester, row: Row) => ({ data: presentTo(actor)(row) }) as never
  const version = (answer: unknown) => uses.versionOf((answer as { data: { attributes: Row } }).data.attributes)
  const checkOf = (checkVersion: (values: unknown) => void) => (current: Row) => checkVersion(uses.versionOf(current))
  return [
    endpoint({
      method: 'GET',
      path,
      level: 'viewer',
      summary: `List ${plural}`,
      description: descriptions.list,
      query: pageQuery.extend(described.filter ?? {}),
      response: pageOfMany(resource),
      handle: async ({ query }, { workspaceId, actor }) =>
        toPage(await uses.list(workspaceId, query as never), query as never, presentTo(actor)) as never,
    }),

    endpoint({
      method: 'GET',
      path: `${path}/:id`,
      level: 'viewer',
      summary: `Retrieve ${singular}`,
      ...(descriptions.retrieve !== undefined && { description: descriptions.retrieve }),
      params: idParams,
      response: one(single),
      version,
      handle: async ({ params }, { workspaceId, actor }) => answerTo(actor, await uses.find(workspaceId, params.id)),
    }),

    endpoint({
      method: 'POST',
      path,
      level: 'member',
      audit: `${type}.created`,
      summary: `Create ${singular}`,
      ...(descriptions.create !== undefined && { description: descriptions.create }),
      body: described.input.meta({ id: `${id}Input` }),
      response: one(resource),
      version,
      status: 201,
      ...refusals,
      handle: async ({ body }, { workspaceId, actor }) => {
        permit?.(actor, body as never)
        return answerTo(actor, await uses.insert(workspaceId, body, actorOf(actor)))
      },
    }),

    endpoint({
      method: 'PATCH',
      path: `${path}/:id`,
      level: 'member',
      audit: `${type}.updated`,
      summary: `Update ${singular}`,
      description: descriptions.update,
      params: idParams,
      body: described.change.meta({ id: `${id}Change` }),
      response: one(resource),
      version,
      checksVersion: true,
      handle: async ({ params, body }, { workspaceId, actor, checkVersion }) => {
        const check = (current: Row) => {
          permit?.(actor, body, current)
          checkOf(checkVersion)(current)
        }
        return answerTo(actor, await uses.update(workspaceId, params.id, body, actorOf(actor), check))
      },
    }),

    described.deletion ??
      endpoint({
        method: 'DELETE',
        path: `${path}/:id`,
        level: 'admin',
        audit: `${type}.deleted`,
        summary: `Delete ${singular}`,
        ...(descriptions.delete !== undefined && { description: descriptions.delete }),
        params: idParams,
        response: 'none',
        checksVersion: true,
        handle: ({ params }, { workspaceId, actor, checkVersion }) =>
          uses.delete!(workspaceId, params.id, actorOf(actor), checkOf(checkVersion)),
      }),
  ]
}
