import type { z } from 'zod'
import { systemActor, type AuditActor } from '../../db/audit.ts'
import { toCamelCase } from '../../domain/casing.ts'
import { differencesOf, only } from '../../workspace/configured-kind.ts'
import type { Kind, Target } from './kind.ts'
import type { WorkspaceState } from './workspace-state.ts'

type Named = Record<string, unknown>
type Referenced = Pick<WorkspaceState, 'destinations' | 'repositories'>

interface Reference {
  inFile: string
  inApi: string
  objects(state: Referenced): readonly { id: string; name: string }[]
}

/** What the API refers to by ids, and the file by names. */
const references: readonly Reference[] = [
  { inFile: 'destination', inApi: 'destination_id', objects: ({ destinations }) => destinations },
  { inFile: 'home', inApi: 'home_destination_id', objects: ({ destinations }) => destinations },
  { inFile: 'destinations', inApi: 'destination_ids', objects: ({ destinations }) => destinations },
  {
    inFile: 'repositories',
    inApi: 'repository_ids',
    objects: ({ repositories }) => repositories.map(({ id, repoId }) => ({ id, name: repoId })),
  },
]

/** Replaces what is found in one value or a list, and leaves out the rest. */
const replaced = (value: unknown, find: (each: unknown) => string | undefined): unknown =>
  value === null ? null : Array.isArray(value) ? value.flatMap((each) => find(each) ?? []) : find(value)

/** Returns an object as the file describes it. The destination of an event subscription may have been deleted: its name is then missing. */
export const inFile = (kind: { valuesOf(row: object): Named }, row: object, state: Referenced): Named => {
  const named = Object.entries(kind.valuesOf(row)).map(([name, value]) => {
    const reference = references.find(({ inApi }) => inApi === name)
    if (!reference) return [name, value]
    const objects = reference.objects(state)
    return [reference.inFile, replaced(value, (id) => objects.find((each) => each.id === id)?.name)]
  })
  return Object.fromEntries(named.filter(([, value]) => value !== undefined)) as Named
}

/** Returns values of the file as the API has them. A reference to an object that could not be created is empty: that has been reported. */
const inApi = (values: Named, state: Referenced): Named =>
  Object.fromEntries(
    Object.entries(values).map(([name, value]) => {
      const reference = references.find((each) => each.inFile === name)
      if (!reference) return [name, value]
      const objects = reference.objects(state)
      return [reference.inApi, replaced(value, (wanted) => objects.find((each) => each.name === wanted)?.id) ?? '']
    }),
  )

const lengthOf = (value: unknown): number => (Array.isArray(value) ? value.length : 0)

interface UseCases {
  insert(workspaceId: string, values: never, actor: AuditActor): Promise<unknown>
  update(workspaceId: string, id: string, change: never, actor: AuditActor): Promise<unknown>
  delete(workspaceId: string, id: string, actor: AuditActor): Promise<unknown>
}

interface FileKind<Row> {
  kind: 'connection' | 'enrichment' | 'notification' | 'event_subscription'
  list: 'connections' | 'enrichments' | 'notifications' | 'event_subscriptions'
  /** The schema of an object in the file, and that of the body that creates one. */
  schema: z.ZodObject
  input: z.ZodObject
  current: readonly Row[]
  describe(row: Row): Named
  uses: UseCases
  /** The value that has to be given again with another one. */
  needs?: Record<string, string>
}

/** Returns what `relay apply` does with the objects of a kind that the schemas describe. */
export const fileKind = <Row extends { id: string; name: string }>(
  { workspaceId, wanted, state }: Target,
  { kind, list, schema, input, current, describe, uses, needs = {} }: FileKind<Row>,
): Kind<Named & { name: string }, Row> => {
  return {
    kind,
    list,
    wanted: wanted[list],
    current,
    nameInFile: ({ name }) => name,
    nameOf: ({ name }) => name,
    create: async (item) => {
      const values = inApi(item, state)
      const isFound = references.every((each) => lengthOf(item[each.inFile]) === 0 || lengthOf(values[each.inApi]) > 0)
      if (isFound) await uses.insert(workspaceId, toCamelCase(input, values as never) as never, systemActor)
      return {}
    },
    compare: (found, item) => differencesOf(schema, describe(found), item),
    update: ({ id }, item, fields) => {
      const names = fields.flatMap((field) => {
        const [name] = field.split('.') as [string]
        return name in needs ? [name, needs[name]!] : [name]
      })
      return uses.update(workspaceId, id, toCamelCase(input, inApi(only(item, names), state) as never) as never, systemActor)
    },
    delete: ({ id }) => uses.delete(workspaceId, id, systemActor),
  }
}
