import { isDeepStrictEqual } from 'node:util'
import { z } from 'zod'
import { notFound } from '../base/refusals.ts'
import { maskedConfig } from '../connectors/target.ts'
import { record, type AuditActor } from '../db/audit.ts'
import type { Database, Transaction } from '../db/database.ts'
import { pageOf, type Page, type PageRequest } from '../db/page.ts'
import { camelCase, toCamelCase, toSnakeCase, type CamelCasedOutput } from '../domain/casing.ts'

// Objects that administrators configure. A schema has the values that people set: columns, versions, audit entries and transactions follow
// from it. What may be a secret is `masked` in the schema: viewers and readers of the audit log see its name only.

type Values<Schema extends z.ZodObject> = CamelCasedOutput<Schema>

/** A change of an object. What is missing stays as it is. */
export type ChangeOf<Schema extends z.ZodObject> = { [Name in keyof Values<Schema>]?: Values<Schema>[Name] | undefined }

/** An object as it is stored: the values that people set, its id and its times. */
export type Configured<Schema extends z.ZodObject> = Values<Schema> & { id: string; createdAt: Date; updatedAt: Date }

type Executor = Database | Transaction

/** Values by the names of the API, which are those of the columns and of the audit log. */
export type Named = Record<string, unknown>

interface Kind<Schema extends z.ZodObject, Row> {
  table: string
  /** The first part of the names of its events. */
  event: 'connection' | 'destination' | 'repository' | 'enrichment' | 'event_subscription' | 'notification'
  /** The first word of the sentences about an object. */
  noun: string
  schema: Schema
  /** The value by which people know an object: `name`, if it is not another one. */
  namedBy?: keyof Schema['shape'] & string
  /** True if a deleted object leaves its row. */
  isKept?: true
  /** Sets of ids that are rows of other tables. `expressions` read them. */
  linked?: readonly (keyof Schema['shape'] & string)[]
  /** Values that the entry of a change leaves out. */
  unrecorded?: readonly (keyof Schema['shape'] & string)[]
  /** Further columns to read. */
  more?: readonly string[]
  /** SQL expressions to read, each with its name. */
  expressions?: readonly string[]
  /** Returns a row as the use cases have it. */
  rowOf?(row: never): Row
}

const unwrapped = (schema: unknown): unknown =>
  schema instanceof z.ZodDefault || schema instanceof z.ZodOptional || schema instanceof z.ZodNullable ? unwrapped(schema.unwrap()) : schema

/** Returns true for a list of names or ids, in which nothing stands twice. */
const isSet = (schema: unknown): boolean => {
  const list = unwrapped(schema)
  return list instanceof z.ZodArray && (list.element instanceof z.ZodString || list.element instanceof z.ZodEnum)
}

const isMasked = (schema: unknown): boolean => schema instanceof z.ZodType && schema.meta()?.['masked'] === true

/** Returns an object, or a part of it, as viewers see it: of what may be a secret, they see the names only. */
export const maskSecrets = <Value>(schema: unknown, value: Value): Value => {
  if (isMasked(schema)) return maskedConfig(['value'], { value })['value'] as Value
  const inner = unwrapped(schema)
  if (!(inner instanceof z.ZodObject) || typeof value !== 'object' || value === null) return value
  const parts = Object.entries(inner.shape).map(([name, each]) => [camelCase(name), each] as const)
  const masked = parts.filter(([name]) => name in value).map(([name, each]) => [name, maskSecrets(each, value[name as keyof Value])])
  return { ...value, ...Object.fromEntries(masked) }
}

/** Moves what may be a secret from a value to `secrets`, by its name. */
const withoutSecrets = (schema: unknown, value: unknown, name: string, secrets: Named): unknown => {
  if (isMasked(schema)) {
    // An empty one has nothing to name.
    if (!isDeepStrictEqual(value, {})) secrets[name] = value
    return undefined
  }
  const inner = unwrapped(schema)
  if (!(inner instanceof z.ZodObject) || value === null || value === undefined) return value
  const parts = Object.entries(value).map(([key, each]) => [key, withoutSecrets(inner.shape[key], each, `${name}.${key}`, secrets)])
  return Object.fromEntries(parts.filter(([, part]) => part !== undefined))
}

/** Returns values as they may be shown, and those that may only be named. What a set contains is in alphabetical order. */
const shownOf = (schema: z.ZodObject, values: Named): { shown: Named; secrets: Named } => {
  const secrets: Named = {}
  const shown: Named = {}
  for (const [name, value] of Object.entries(values)) {
    const part = withoutSecrets(schema.shape[name], value, name, secrets)
    if (part !== undefined) shown[name] = isSet(schema.shape[name]) ? (part as string[]).toSorted() : part
  }
  return { shown, secrets }
}

const differing = (before: Named, after: Named): string[] =>
  Object.keys({ ...before, ...after }).filter((name) => !isDeepStrictEqual(before[name], after[name]))

/** A value that differs. What may be a secret is only named. */
export interface Difference {
  name: string
  before?: unknown
  after?: unknown
}

/** Returns the values that differ. The order in a set has no meaning. */
export const differencesOf = (schema: z.ZodObject, before: Named, after: Named): Difference[] => {
  const [old, current] = [shownOf(schema, before), shownOf(schema, after)]
  return [
    ...differing(old.shown, current.shown).map((name) => ({ name, before: old.shown[name], after: current.shown[name] })),
    ...differing(old.secrets, current.secrets).map((name) => ({ name })),
  ]
}

/** Returns the values with these names. */
export const only = (values: Named, names: readonly string[]): Named =>
  Object.fromEntries(names.flatMap((name) => (name in values ? [[name, values[name]]] : [])))

/** Defines a kind of object: how it is read, versioned and recorded. */
export const configuredKind = <Schema extends z.ZodObject, Row extends { id: string } = Configured<Schema>>({
  table,
  event,
  noun,
  schema,
  namedBy = 'name',
  isKept,
  linked = [],
  unrecorded = [],
  more = [],
  expressions = [],
  rowOf = (row) => row,
}: Kind<Schema, Row>) => {
  const own = Object.keys(schema.shape).filter((name) => !linked.includes(name))
  const nested = own.filter((name) => unwrapped(schema.shape[name]) instanceof z.ZodObject)
  const columns = (executor: Executor) => [
    ...['id', ...own, ...more, 'created_at', 'updated_at'].map((name) => `${name} as ${camelCase(name)}`),
    ...expressions.map((expression) => executor.raw(expression)),
  ]
  const toRow = (found: Named): Row => {
    const renamed = nested.map((name) => [camelCase(name), toCamelCase(schema.shape[name] as z.ZodType, found[camelCase(name)])])
    return rowOf({ ...found, ...Object.fromEntries(renamed) } as never)
  }

  const query = (executor: Executor, workspaceId: string, filter: Named) => {
    const rows = executor(table).where({ workspace_id: workspaceId, ...filter })
    return isKept ? rows.whereNull('deleted_at') : rows
  }

  /** Returns the values that people set, of an object or of a change. */
  const valuesOf = (row: object): Named => {
    const values = toSnakeCase(schema, row as never) as Named
    for (const [name, value] of Object.entries(values)) if (isSet(schema.shape[name])) values[name] = [...new Set(value as unknown[])]
    return values
  }

  const nameOf = (row: object) => (row as Record<string, string>)[camelCase(namedBy)]!

  return {
    table,
    event,
    schema,
    valuesOf,

    /** Returns the names of the values that are not what they should be. */
    changedBy: (current: Row, wanted: Named): string[] => differing(only(valuesOf(current), Object.keys(wanted)), wanted),

    /** Returns what the version of an object stands for. */
    versionOf: (row: object): unknown[] => Object.values(valuesOf(row)),

    columnsOf: (values: Named): Named =>
      Object.fromEntries(
        own.flatMap((name) => {
          const value = values[name]
          if (value === undefined) return []
          const isJson = typeof value === 'object' && value !== null && !isSet(schema.shape[name])
          return [[name, isJson ? JSON.stringify(value) : value]]
        }),
      ),

    /** @throws AppError 404 */
    find: async (executor: Executor, workspaceId: string, id: string): Promise<Row> => {
      const [found]: Named[] = await query(executor, workspaceId, { id }).select(columns(executor))
      if (!found) throw notFound()
      return toRow(found)
    },

    /** Lists a page of the objects that have these values, in order of creation. */
    list: async (executor: Executor, workspaceId: string, page: PageRequest, filter: Named = {}): Promise<Page<Row>> => {
      const { items, total } = await pageOf<Named>(query(executor, workspaceId, filter).orderBy('id'), columns(executor), page)
      return { items: items.map(toRow), total }
    },

    /** Lists all objects that have these values, in order of creation. */
    listAll: async (executor: Executor, workspaceId: string, filter: Named = {}): Promise<Row[]> => {
      const found: Named[] = await query(executor, workspaceId, filter).select(columns(executor)).orderBy('id')
      return found.map(toRow)
    },

    /** Records that an object was created. */
    recordCreation: (trx: Transaction, workspaceId: string, row: Row, actor: AuditActor) =>
      record(trx, {
        workspaceId,
        event: `${event}.created`,
        subjectId: row.id,
        description: `${noun} ${nameOf(row)} was created${'isActive' in row && row.isActive === false ? ', inactive' : ''}.`,
        metadata: shownOf(schema, valuesOf(row)).shown,
        actor,
      }),

    /** Records which values of an object have changed, if any. @param others names of what has changed besides */
    recordChange: async (
      trx: Transaction,
      workspaceId: string,
      { current, row, others = [] }: { current: Row; row: Row; others?: readonly string[] | undefined },
      actor: AuditActor,
    ) => {
      const differences = differencesOf(schema, valuesOf(current), valuesOf(row)).filter(({ name }) => !unrecorded.includes(name))
      const names = [...differences.map(({ name }) => name), ...others]
      if (names.length === 0) return
      const valuesIn = (side: 'before' | 'after') =>
        Object.fromEntries(differences.flatMap((each) => (side in each ? [[each.name, each[side]]] : [])))
      await record(trx, {
        workspaceId,
        event: `${event}.updated`,
        subjectId: row.id,
        description: `${noun} ${nameOf(row)} was changed: ${names.join(', ')}.`,
        metadata: { [namedBy]: nameOf(row), before: valuesIn('before'), after: valuesIn('after') },
        actor,
      })
    },

    /** Deletes an object, by itself or with another one. */
    remove: async (trx: Transaction, workspaceId: string, { id, name }: { id: string; name: string }, actor: AuditActor): Promise<void> => {
      await trx(table).where({ id }).delete()
      const description = `${noun} ${name} was deleted.`
      await record(trx, { workspaceId, event: `${event}.deleted`, subjectId: id, description, metadata: { name }, actor })
    },
  }
}

export type ConfiguredKind<Schema extends z.ZodObject, Row extends { id: string }> = ReturnType<typeof configuredKind<Schema, Row>>
